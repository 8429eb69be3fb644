package program

// Plain says that a matrix's values are the ones of a graph for which weight= names no
// array, so that nothing is to be told of them: a block of them has no values.
func (p *Program) Plain(matrix int) bool {
	switch n := &p.Nodes[matrix]; n.Op {
	case Whole, Slice, Cross:
		return p.Weight == ""
	case Individual, Collective, Filter, TopK:
		return p.Plain(n.In[0])
	case Merge:
		return p.Plain(n.In[0]) && p.Plain(n.In[1])
	}
	return false
}
