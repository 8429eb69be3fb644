package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// Negatives draws vertices beside walks, as core.Negatives says.
func Negatives(list int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.Negatives(list)
}

// DeviceNegatives puts the same on a device into a stream.
func DeviceNegatives(device, list, stream int64) (zero int64, err error) {
	defer finish(&err)
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
