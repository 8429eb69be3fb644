package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

var degrees table[*core.Degrees]

// DegreesNew starts to count the degrees of a graph on the host, and its parallel edges if parallel
// is not 0.
func DegreesNew(graph, parallel int64) (count int64, err error) {
	defer finish(&err)
	g, err := relationOf(graph)
	if err != nil {
		return 0, err
	}
	d, err := core.NewDegrees(g, parallel != 0)
	if err != nil {
		return 0, err
	}
	return degrees.add(d), nil
}

// DegreesAdvance counts about edges more edges and returns the number of rows counted so far.
func DegreesAdvance(count, edges int64) (row int64, err error) {
	defer finish(&err)
	d, ok := degrees.get(count)
	if !ok {
		return 0, closed("degrees")
	}
	return d.Advance(edges)
}

// DegreesProfile returns the counts as JSON.
func DegreesProfile(count int64) (profile string, err error) {
	defer finish(&err)
	d, ok := degrees.get(count)
	if !ok {
		return "", closed("degrees")
	}
	return d.Profile()
}

// DegreesOut returns a memory with the out-degree of each node as 64-bit integers.
func DegreesOut(count int64) (mem int64, err error) {
	defer finish(&err)
	d, ok := degrees.get(count)
	if !ok {
		return 0, closed("degrees")
	}
	return d.Out()
}

// DegreesClose releases the memory of a count.
func DegreesClose(count int64) (zero int64, err error) {
	defer finish(&err)
	if d, ok := degrees.take(count); ok {
		d.Close()
	}
	return 0, nil
}
