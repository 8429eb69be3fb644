package passes

import "github.com/pygsampler/pygsampler/pygsampler/internal/program"

// dce removes nodes that no returned value depends on, including draws. This is legal, since sites
// are part of the nodes: other nodes draw the same numbers as before. An error of a batch in a
// removed node no longer occurs.
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
