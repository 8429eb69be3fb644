package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// ProgramExplain describes the program of a plan on a graph as text in aligned columns: the program
// before and after each optimization pass, the engine that runs it, and the estimated cost of a
// batch of seeds seeds.
func ProgramExplain(graph int64, document string, seeds int64) (text string, err error) {
	defer finish(&err)
	g, err := relationOf(graph)
	if err != nil {
		return "", err
	}
	p, err := core.NewSampler(document, 0)
	if err != nil {
		return "", err
	}
	return p.Explain(g, seeds)
}

// ProgramLines returns the text of a document's program after all optimization passes.
func ProgramLines(document string) (text string, err error) {
	defer finish(&err)
	p, err := core.NewSampler(document, 0)
	if err != nil {
		return "", err
	}
	return p.Lines()
}

// ProgramPlaces returns a line for each extra array of a batch of the document's program; the line
// names the list that the elements of the array belong to.
func ProgramPlaces(document string) (text string, err error) {
	defer finish(&err)
	p, err := core.NewSampler(document, 0)
	if err != nil {
		return "", err
	}
	return p.Places()
}

// ProgramCalibrate measures the cost of the operations of programs on the CPU of this machine
// (device -1), or on a GPU the cost of the operations that have alternatives there, and stores the
// costs for later processes. It returns JSON with the path of the file and the costs in
// nanoseconds.
func ProgramCalibrate(device int64) (text string, err error) {
	defer finish(&err)
	if device == onCPU {
		return core.Calibrate()
	}
	return core.CalibrateDevice(device)
}
