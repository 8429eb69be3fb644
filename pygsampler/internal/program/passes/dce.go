package passes

import "github.com/pygsampler/pygsampler/pygsampler/internal/program"

// dce takes out what nothing that is returned is made of, draws too. Legal, since sites are
// part of the nodes: others draw the numbers that they drew before. What would have been an
// error of a batch in a node that is gone is none.
func dce(p *program.Program) (*program.Program, error) {
	live := make([]bool, len(p.Nodes))
	for _, node := range p.Returned() {
		live[node] = true
	}
	for i := len(p.Nodes) - 1; i >= 0; i-- {
		for _, in := range p.Nodes[i].In {
			live[in] = live[in] || live[i]
		}
	}
	at := make([]int, len(p.Nodes))
	var nodes []program.Node
	for i := range p.Nodes {
		if at[i] = -1; !live[i] {
			continue
		}
		n := p.Nodes[i]
		in := make([]int, len(n.In))
		for k, node := range n.In {
			in[k] = at[node]
		}
		n.In = in
		at[i] = len(nodes)
		nodes = append(nodes, n)
	}
	return p.Rebuilt(nodes, at)
}
