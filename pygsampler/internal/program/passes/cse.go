package passes

import "github.com/pygsampler/pygsampler/pygsampler/internal/program"

// cse merges equal nodes. This is legal if a node is a function of its inputs and of its
// attributes; nodes that draw are not merged, although their sites would distinguish them anyway:
// two equal sampling calls are two samples.
func cse(p *program.Program) (*program.Program, error) {
	known := map[string]int{}
	return rewritten(p, func(n *program.Node, nodes []program.Node) int {
		if n.Draws() {
			return -1
		}
		key := n.Key()
		if at, is := known[key]; is {
			return at
		}
		known[key] = len(nodes)
		return -1
	})
}
