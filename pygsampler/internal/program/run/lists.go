package run

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// makeList makes a list of nodes.
func (c *call[I]) makeList(i int) *list[I] {
	n := &c.Nodes[i]
	in := func(k int) *list[I] { return c.values[n.In[k]].list }
	switch n.Op {
	case program.Seeds:
		ids := take[I](&c.arena, c.Seeds.Len())
		for k := range ids {
			ids[k] = I(c.Seeds.Element(int64(k)))
		}
		return &list[I]{ids}
	case program.Column:
		return c.edgesOf(n.In[0]).columns
	case program.Row:
		return c.rowsOf(c.edgesOf(n.In[0])).rows
	case program.Union:
		return c.unique(in(0), in(1))
	case program.Unique:
		return c.unique(in(0))
	case program.Concat:
		a, b := in(0).ids, in(1).ids
		ids := take[I](&c.arena, int64(len(a)+len(b)))
		copy(ids[copy(ids, a):], b)
		return &list[I]{ids}
	case program.Pick:
		of, by := in(0).ids, c.vectorOf(n.In[1])
		ids := take[I](&c.arena, int64(len(of)))[:0]
		for k, x := range by {
			if x != 0 {
				ids = append(ids, of[k])
			}
		}
		return &list[I]{ids}
	case program.Draw:
		return c.draw(n)
	case program.Roots:
		return c.roots(n)
	case program.Walk:
		return c.walk(n, in(0).ids)
	}
	panic("not a list: " + n.Op.String())
}

// unique returns the nodes of lists, one list after another, by first occurrence.
func (c *call[I]) unique(lists ...*list[I]) *list[I] {
	all := int64(0)
	for _, l := range lists {
		all += int64(len(l.ids))
	}
	nodes, n := c.numbering(all), int64(0)
	buffer := take[I](&c.arena, min(all, claimed))
	for _, l := range lists {
		for ids := l.ids; len(ids) > 0; {
			part := buffer[:copy(buffer, ids)]
			n = c.claim(part, nodes, n)
			ids = ids[len(part):]
		}
	}
	return &list[I]{nodes[:n]}
}

// draw draws nodes of the list that a vector runs along.
func (c *call[I]) draw(n *program.Node) *list[I] {
	by, of := c.vectorOf(n.In[0]), c.listAlong(c.Nodes[n.In[0]].Type.Along).ids
	text := ""
	if by := &c.Nodes[n.In[0]]; by.Once || by.Op == program.Degree {
		text = "draws of\n" + c.textOf(n.In[0])
	}
	positive := false
	if text == "" || c.Relation.Kept.Get(text) == nil {
		positive = c.chances("draw", by, func(i int) I { return of[i] })
	}
	chosen := c.chosen(n, by, of, text, positive)
	ids := take[I](&c.arena, int64(len(chosen)))
	for k, place := range chosen {
		ids[k] = of[place]
	}
	return &list[I]{ids}
}
