package passes

import "github.com/pygsampler/pygsampler/pygsampler/internal/program"

// cse makes one node of equal ones. Legal where a node is a function of its inputs and of
// its attributes; those that draw are not merged, though their sites would tell them apart
// anyway: two equal sampling calls are two samples.
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
