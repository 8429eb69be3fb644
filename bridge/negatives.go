package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// DrawNumbers draws numbers below a bound, as core.Negatives says, or puts that into a stream of a device; device -1 is
// the CPU.
func DrawNumbers(device, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	if device == onCPU {
		return 0, core.Negatives(list)
	}
	return 0, core.DeviceNegatives(device, list, stream)
}

// NegativesStart begins to make the table by which a graph's vertices are drawn in proportion to
// their degree to a power, given by its bits.
func NegativesStart(graph, power int64) (job int64, err error) {
	defer finish(&err)
	g, err := graphOf(graph)
	if err != nil {
		return 0, err
	}
	j, err := core.StartNegatives(g, power)
	if err != nil {
		return 0, err
	}
	return derivedJobs.add(j), nil
}
