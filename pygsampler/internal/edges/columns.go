package edges

import (
	"fmt"
	"slices"
	"strings"
)

// columns holds the positions of the ends of edges in a table, and their names in errors.
type columns struct {
	src, dst         int
	srcName, dstName string
}

type namePair struct{ sources, targets []string }

var (
	// Names of columns that belong together, in the spelling of plainName. The first pair has no
	// other meaning wherever it occurs.
	namePairs = []namePair{
		{[]string{"src", "source"}, []string{"dst", "target", "dest", "destination"}},
		{[]string{"from"}, []string{"to"}},
		{[]string{"head"}, []string{"tail"}},
		{[]string{"u"}, []string{"v"}},
		{[]string{"user"}, []string{"item"}},
		{[]string{"citing"}, []string{"cited"}},
		{[]string{"start"}, []string{"end"}},
		{[]string{"node1", "id1"}, []string{"node2", "id2"}},
	}
	// For files with names of two pairs, such as src and to.
	mixedNames = namePair{
		[]string{"src", "source", "from", "head"},
		[]string{"dst", "target", "dest", "destination", "to", "tail"},
	}
)

// plainName is a name without what differs from file to file: "Source_ID" and
// "sourceNode" are "source".
func plainName(name string) string {
	name = strings.NewReplacer(" ", "", "_", "", "-", "", ":", "").Replace(strings.ToLower(name))
	for _, end := range []string{"id", "node"} {
		// "uid" is not "u".
		if rest := strings.TrimSuffix(name, end); len(rest) > 1 {
			name = rest
		}
	}
	return name
}

// usual is the only column with one of the names, but for the column except; -1 where
// there is none, or more.
func usual(names, known []string, except int) int {
	found := -1
	for i, name := range names {
		if i != except && slices.Contains(known, plainName(name)) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

// usualPair returns the columns with usual names. several reports that there are more such pairs,
// without a reason to prefer one.
func usualPair(names []string) (u, v int, ok, several bool) {
	for i, p := range namePairs {
		a, b := usual(names, p.sources, -1), usual(names, p.targets, -1)
		switch {
		case a < 0 || b < 0:
		case ok:
			return 0, 0, false, true
		case i == 0:
			return a, b, true, false
		default:
			u, v, ok = a, b, true
		}
	}
	if !ok {
		u, v = usual(names, mixedNames.sources, -1), usual(names, mixedNames.targets, -1)
		ok = u >= 0 && v >= 0
	}
	return u, v, ok, false
}

// counterpart returns the column that is the target of a source column by its name, or with flip
// the source of a target column; -1 if there is none.
func counterpart(names []string, given int, flip bool) int {
	for _, p := range namePairs {
		mine, other := p.sources, p.targets
		if flip {
			mine, other = other, mine
		}
		if given < len(names) && slices.Contains(mine, plainName(names[given])) {
			if at := usual(names, other, given); at >= 0 {
				return at
			}
		}
	}
	if flip {
		return usual(names, mixedNames.sources, given)
	}
	return usual(names, mixedNames.targets, given)
}

// candidates is the columns with names, but for an index that pandas wrote.
func candidates(names []string) []int {
	var out []int
	for i, name := range names {
		if name != "" && !strings.HasPrefix(name, "__index_level_") && !strings.HasPrefix(name, "Unnamed: ") {
			out = append(out, i)
		}
	}
	return out
}

// pick returns the columns of sources and targets: the requested columns, else columns with usual
// names, else the only two. If columns have no names, "", it returns the first two. names is nil
// for an empty file.
func pick(path string, names []string, src, dst Column) (columns, error) {
	c := columns{src: 0, dst: 1, srcName: "src", dstName: "dst"}
	var err error
	if src.Given {
		if c.src, err = find(path, names, "src", src); err != nil {
			return c, err
		}
	}
	if dst.Given {
		if c.dst, err = find(path, names, "dst", dst); err != nil {
			return c, err
		}
	}
	if names == nil {
		return c, nil
	}
	switch {
	case src.Given && dst.Given:
	case src.Given:
		c.dst, err = guessOther(path, names, c.src, 1)
	case dst.Given:
		c.src, err = guessOther(path, names, c.dst, 0)
	default:
		u, v := ofType(names, src.Of), ofType(names, dst.Of)
		if u >= 0 && v >= 0 && u != v {
			c.src, c.dst = u, v
		} else {
			c.src, c.dst, err = guessBoth(path, names)
		}
	}
	if err != nil {
		return c, err
	}
	if top := max(c.src, c.dst); top >= len(names) {
		side := "dst"
		if c.src == top {
			side = "src"
		}
		return c, located(path, "%s: expected at least %d columns, got %d", side, top+1, len(names))
	}
	if c.src == c.dst {
		return c, located(path, "src, dst: expected two columns, got column %s for both", shown(names, c.src))
	}
	if a, b, two := twoKinds(names[c.src], names[c.dst]); two && !src.Mixed {
		return c, located(path, "expected two columns of one kind of nodes, got %s and %s; types=(%q, \"to\", %q) makes a heterogeneous graph, one_kind=True one set of nodes",
			quoted([]byte(names[c.src])), quoted([]byte(names[c.dst])), a, b)
	}
	c.srcName, c.dstName = label("src", names[c.src]), label("dst", names[c.dst])
	return c, nil
}

// EndpointColumns returns the positions of the source and target columns among the names of a table; path is
// the name of the table in errors.
func EndpointColumns(path string, names []string, src, dst Column) (u, v int, err error) {
	c, err := pick(path, names, src, dst)
	return c.src, c.dst, err
}

// find returns the position of a requested column.
func find(path string, names []string, side string, c Column) (int, error) {
	if c.Name == "" {
		return c.Index, nil
	}
	i := slices.Index(names, c.Name)
	if i < 0 && names != nil {
		return 0, located(path, "%s: expected a column %q, got columns %s", side, c.Name, listed(names))
	}
	if i >= 0 && slices.Index(names[i+1:], c.Name) >= 0 {
		return 0, located(path, "%s: expected one column %q, got two", side, c.Name)
	}
	return max(i, 0), nil
}

// guessBoth guesses both columns. Any two of three columns with meaningless names would be a graph,
// and most likely a wrong one, so that is an error.
func guessBoth(path string, names []string) (u, v int, err error) {
	known := candidates(names)
	u, v, ok, several := usualPair(names)
	switch {
	case ok:
		return u, v, nil
	case len(known) == 2:
		return known[0], known[1], nil
	case several:
		return 0, 0, located(path, "expected src= and dst=, as several pairs of columns have usual names; the columns are %s", listed(names))
	case len(known) > 0 && len(names) > 1:
		return 0, 0, located(path, "expected src= and dst=, as no pair of columns has a usual name; the columns are %s", listed(names))
	}
	return 0, 1, nil
}

// guessOther guesses the other end, 0 the source and 1 the target, of a column that the caller has
// named.
func guessOther(path string, names []string, given, end int) (int, error) {
	if i := counterpart(names, given, end == 0); i >= 0 {
		return i, nil
	}
	sides := [2]string{"src", "dst"}
	missing, other := sides[end], sides[1-end]
	known := candidates(names)
	guess := end
	if len(known) == 2 && known[1-end] == given {
		guess = known[end]
	} else if len(known) > 0 && len(names) > 2 {
		return 0, located(path, "expected %s= in addition to %s=, since no other column has a usual name for it; the columns are %s", missing, other, listed(names))
	}
	if guess == given {
		return 0, located(path, "expected %s= in addition to %s=, which is column %s", missing, other, shown(names, given))
	}
	return guess, nil
}

// label returns the name of an end in errors: the name of its column reveals a wrong guess.
func label(side, name string) string {
	if name == "" || name == side {
		return side
	}
	return fmt.Sprintf("%s (column %s)", side, quoted([]byte(name)))
}

// shown is a column by its name, else by its place.
func shown(names []string, i int) string {
	if i >= len(names) || names[i] == "" {
		return fmt.Sprint(i)
	}
	return quoted([]byte(names[i]))
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	var all []string
	for i, name := range names {
		if i == 20 {
			all = append(all, "...")
			break
		}
		if name == "" {
			name = fmt.Sprint(i)
		}
		all = append(all, shortened([]byte(name)))
	}
	return strings.Join(all, ", ")
}
