package program

// ColumnsOf is what a vector along the columns of edges runs along.
func (p *Program) ColumnsOf(edges int) Along { return p.columns(edges) }

// RowsOf is what a vector along the rows of edges runs along.
func (p *Program) RowsOf(edges int) Along { return p.rows(edges) }

// Needed says of each node whether the result is made of it.
func (p *Program) Needed() []bool {
	needed := make([]bool, len(p.Nodes))
	for _, m := range p.Matrices {
		needed[m] = true
	}
	if p.Result == Subgraph {
		needed[p.List] = true
	}
	for _, e := range p.Extras {
		needed[e.Node] = true
	}
	for i := len(p.Nodes) - 1; i >= 0; i-- {
		if !needed[i] {
			continue
		}
		for _, in := range p.Nodes[i].In {
			needed[in] = true
		}
	}
	return needed
}
