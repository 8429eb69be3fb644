package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// ProgramExplain says what the program of a plan's document does on a graph: before and
// after each pass, where it runs, and about what a batch of so many seeds costs. A text in
// aligned columns.
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

// ProgramLines is the text of a document's program as it runs, after all passes.
func ProgramLines(document string) (text string, err error) {
	defer finish(&err)
	p, err := core.NewSampler(document, 0)
	if err != nil {
		return "", err
	}
	return p.Lines()
}

// ProgramPlaces says whose elements the arrays have that a batch of a document's program has beside its blocks, a line
// each.
func ProgramPlaces(document string) (text string, err error) {
	defer finish(&err)
	p, err := core.NewSampler(document, 0)
	if err != nil {
		return "", err
	}
	return p.Places()
}

// ProgramCalibrate measures what programs' work takes on the CPU of this machine (device -1), or on a GPU the work that
// has a choice there, and keeps it for later processes. It returns JSON: where that is, and the costs in nanoseconds.
func ProgramCalibrate(device int64) (text string, err error) {
	defer finish(&err)
	if device == onCPU {
		return core.Calibrate()
	}
	return core.CalibrateDevice(device)
}
