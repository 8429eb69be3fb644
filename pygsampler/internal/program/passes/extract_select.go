package passes

import "github.com/pygsampler/pygsampler/pygsampler/internal/program"

// extractSelect does not store the edges of a slice if its only reader is a uniform draw of each
// column, which needs positions only. This is legal, since that draw is among positions in a row,
// whose length is the degree.
func extractSelect(p *program.Program) (*program.Program, error) {
	takers := takersOf(p)
	return p.Marked(func(i int, n *program.Node) {
		by := takers[i]
		if n.Op != program.Slice || by.returned || len(by.nodes) != 1 {
			return
		}
		draw := &p.Nodes[by.nodes[0]]
		n.Inline = draw.Op == program.Individual && len(draw.In) == 1
	}), nil
}
