package program

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The most nodes of a program, sites, and bytes of a name.
const (
	MaxNodes = 1 << 12
	MaxSites = 256
	maxName  = 1 << 10
)

// ErrSites reports that a program has more draw sites than the random numbers support.
var ErrSites = errors.New("too many sampling calls")

// Parse parses a text, or returns an error that names the invalid node ("%3: ..."). It validates
// everything.
func Parse(text, weight string) (*Program, error) {
	p := &Program{Weight: weight}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines)-1 > MaxNodes {
		return nil, fmt.Errorf("expected at most %d operators, got %d", MaxNodes, len(lines)-1)
	}
	for i, line := range lines[:len(lines)-1] {
		rest, ok := strings.CutPrefix(line, fmt.Sprintf("%%%d = ", i))
		if !ok {
			return nil, fmt.Errorf("%%%d: expected a line '%%%d = ...', got %q", i, i, line)
		}
		n, err := parseNode(rest, i)
		if err == nil {
			n.Type, err = p.typeOf(&n, i)
		}
		if err != nil {
			return nil, fmt.Errorf("%%%d: %w", i, err)
		}
		p.Nodes = append(p.Nodes, n)
	}
	if err := p.parseReturn(lines[len(lines)-1]); err != nil {
		return nil, fmt.Errorf("return: %w", err)
	}
	return p, p.Check()
}

var ops = func() map[string]Op {
	m := make(map[string]Op, numOps)
	for o := range numOps {
		m[specs[o].name] = o
	}
	return m
}()

// parseNode parses the text after "%i = ".
func parseNode(text string, i int) (n Node, err error) {
	name, rest, _ := strings.Cut(text, " ")
	op, ok := ops[name]
	if !ok {
		return n, fmt.Errorf("expected an operator, got %q", name)
	}
	n = Node{Op: op, Axis: -1}
	for rest != "" && rest[0] == '%' {
		var in string
		in, rest, _ = strings.Cut(rest, " ")
		k, err := node(strings.TrimSuffix(in, ","), i)
		if err != nil {
			return n, err
		}
		n.In = append(n.In, k)
	}
	attrs, err := attributes(rest)
	if err != nil {
		return n, err
	}
	for _, name := range strings.Fields(specs[op].attrs) {
		value, given := attrs[name]
		delete(attrs, name)
		if !given && name != "axis" && name != "batches" {
			return n, fmt.Errorf("%s: expected %s=, got none", n.Op, name)
		}
		if given {
			if err := n.set(name, value); err != nil {
				return n, fmt.Errorf("%s: %s: %w", n.Op, name, err)
			}
		}
	}
	if len(attrs) > 0 {
		return n, fmt.Errorf("%s: expected no %s", n.Op, slices.Sorted(maps.Keys(attrs))[0])
	}
	return n, nil
}

func (n *Node) set(name, value string) (err error) {
	switch name {
	case "k":
		if n.K, err = strconv.ParseInt(value, 10, 64); err != nil || n.K < -1 || n.K > math.MaxInt32 {
			return fmt.Errorf("expected an integer from -1 to 2**31 - 1, got %s", value)
		}
	case "replace":
		if n.Replace, err = strconv.ParseBool(value); err != nil {
			return fmt.Errorf("expected true or false, got %s", value)
		}
	case "site":
		if n.Site, err = strconv.Atoi(value); err != nil || n.Site < 0 {
			return fmt.Errorf("expected an integer >= 0, got %s", value)
		}
		if n.Site >= MaxSites {
			return fmt.Errorf("%w: expected at most %d in a program", ErrSites, MaxSites)
		}
	case "batches":
		if n.Batches, err = strconv.ParseInt(value, 10, 64); err != nil || n.Batches < 1 || n.Batches > math.MaxInt32 {
			return fmt.Errorf("expected an integer from 1 to 2**31 - 1, got %s", value)
		}
	case "axis":
		if n.Axis, err = strconv.Atoi(value); err != nil || n.Axis < 0 || n.Axis > 1 {
			return fmt.Errorf("expected 0 (columns) or 1 (rows), got %s", value)
		}
	case "name":
		if n.Name, err = strconv.Unquote(value); err != nil || len(n.Name) > maxName {
			return fmt.Errorf("expected a quoted name, got %s", value)
		}
	case "value":
		if n.Value, err = strconv.ParseFloat(value, 64); err != nil {
			return fmt.Errorf("expected a number, got %s", value)
		}
	}
	return nil
}

// node parses the number after a percent sign, which must be less than i.
func node(text string, i int) (int, error) {
	if k, err := strconv.Atoi(strings.TrimPrefix(text, "%")); err == nil && k >= 0 && k < i && strings.HasPrefix(text, "%") {
		return k, nil
	}
	return 0, fmt.Errorf("expected a node before %%%d, got %q", i, text)
}

// attributes are pairs name=value with blanks between; a value may be quoted, and a name of an extra, too.
func attributes(text string) (map[string]string, error) {
	found := map[string]string{}
	for text = strings.TrimLeft(text, " "); text != ""; text = strings.TrimLeft(text, " ") {
		name, rest, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("expected name=value, got %q", text)
		}
		value := rest
		if quoted, err := strconv.QuotedPrefix(rest); err == nil {
			value = quoted
		} else if at := strings.IndexByte(rest, ' '); at >= 0 {
			value = rest[:at]
		}
		if _, twice := found[name]; twice {
			return nil, fmt.Errorf("expected %s once, got it twice", name)
		}
		found[name], text = value, rest[len(value):]
	}
	return found, nil
}

// parseReturn parses `return blocks %1, ~%2 "name"=%3 "name"[0]=%4`: ~ leaves the values of a
// matrix out, and [0] marks values of the edges of the first block.
func (p *Program) parseReturn(line string) error {
	rest, ok := strings.CutPrefix(line, "return ")
	name, rest, _ := strings.Cut(rest, " ")
	kind := slices.Index(results, name)
	if !ok || kind < 0 {
		return fmt.Errorf("expected 'return blocks|subgraph|vectors ...', got %q", line)
	}
	p.Result = Result(kind)
	var list []int
	var bare []bool
	for rest != "" && (rest[0] == '%' || rest[0] == '~') {
		var in string
		in, rest, _ = strings.Cut(rest, " ")
		in, without := strings.CutPrefix(in, "~")
		k, err := node(strings.TrimSuffix(in, ","), len(p.Nodes))
		if err != nil {
			return err
		}
		list, bare = append(list, k), append(bare, without)
	}
	for rest != "" {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return fmt.Errorf("expected \"name\"=%%node, got %q", rest)
		}
		extra := Extra{}
		if extra.Name, err = strconv.Unquote(quoted); err != nil || extra.Name == "" || len(extra.Name) > maxName {
			return fmt.Errorf("expected a name, got %s", quoted)
		}
		var in string
		in, rest, _ = strings.Cut(rest[len(quoted):], " ")
		if of, ok := strings.CutPrefix(in, "["); ok {
			place, after, _ := strings.Cut(of, "]")
			k, err := strconv.Atoi(place)
			if err != nil || k < 0 || k >= len(list) {
				return fmt.Errorf("expected the place of a matrix in brackets, got %q", in)
			}
			extra.Block, in = k+1, after
		}
		if extra.Node, err = node(strings.TrimPrefix(in, "="), len(p.Nodes)); err != nil {
			return err
		}
		p.Extras = append(p.Extras, extra)
	}
	p.Matrices, p.Bare = list, bare
	if p.Result == Subgraph {
		if len(list) != 2 {
			return fmt.Errorf("expected a list and a matrix for a subgraph, got %d nodes", len(list))
		}
		p.List, p.Matrices, p.Bare = list[0], list[1:], bare[1:]
	}
	return nil
}
