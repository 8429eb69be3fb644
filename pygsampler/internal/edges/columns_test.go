package edges

import (
	"slices"
	"strings"
	"testing"
)

func TestColumnsAreChosen(t *testing.T) {
	for _, k := range []struct {
		names    string
		src, dst Column
		u, v     int
	}{
		{"index,user_id,item_id", Column{Mixed: true}, Column{}, 1, 2},
		{"timestamp,User,item", Column{Mixed: true}, Column{}, 1, 2},
		{"id,head_id,tail_id", Column{}, Column{}, 1, 2},
		{"tail,rel,head", Column{}, Column{}, 2, 0},
		{"w,source_node_id,Target-Node", Column{}, Column{}, 1, 2},
		{"w,fromNodeId,toNodeId", Column{}, Column{}, 1, 2},
		{":TYPE,:START_ID,:END_ID", Column{}, Column{}, 1, 2},
		{"n,id_1,id_2", Column{}, Column{}, 1, 2},
		{"w,v,u", Column{}, Column{}, 2, 1},
		{"w,src,to", Column{}, Column{}, 1, 2},
		{"start,end,src,dst", Column{}, Column{}, 2, 3},
		{"dst,src", Column{}, Column{}, 1, 0},
		{"w,x", Column{}, Column{}, 0, 1},
		{",w,x", Column{}, Column{}, 1, 2},
		{"w,x,", Column{}, Column{}, 0, 1},
		{"w,x,__index_level_0__", Column{}, Column{}, 0, 1},
		{"Unnamed: 0,w,x", Column{}, Column{}, 1, 2},
		{",,", Column{}, Column{}, 0, 1},
		{"a,b,c", named("c"), named("a"), 2, 0},
		{"a,b,c", nth(1), nth(2), 1, 2},
		{"a,b,dst", named("b"), Column{}, 1, 2},
		{"item,x,dst,user", Column{Name: "user", Given: true, Mixed: true}, Column{}, 3, 0},
		{"a,from,b,to", Column{}, named("to"), 1, 3},
		{"w,x", nth(0), Column{}, 0, 1},
		{"w,x", Column{}, named("x"), 0, 1},
		{",w,x", named("w"), Column{}, 1, 2},
		{",w,x", Column{}, named("x"), 1, 2},
		{",,", nth(2), Column{}, 2, 1},
	} {
		c, err := pick("e", strings.Split(k.names, ","), k.src, k.dst)
		if err != nil || c.src != k.u || c.dst != k.v {
			t.Errorf("%s: got %d, %d, %v, want %d, %d", k.names, c.src, c.dst, err, k.u, k.v)
		}
	}
	for _, k := range []struct {
		names    string
		src, dst Column
		want     string
	}{
		{"a,b,c", Column{}, Column{}, "e: expected src= and dst=, as no pair of columns has a usual name; the columns are a, b, c"},
		{",a,b,c", Column{}, Column{}, "e: expected src= and dst=, as no pair of columns has a usual name; the columns are 0, a, b, c"},
		{",a", Column{}, Column{}, "e: expected src= and dst=, as no pair"},
		{"src,source,dst", Column{}, Column{}, "e: expected src= and dst=, as no pair"},
		{"user,item,from,to", Column{}, Column{}, "e: expected src= and dst=, as several pairs of columns have usual names; the columns are user, item, from, to"},
		{"a,b,c", named("b"), Column{}, "e: expected dst= in addition to src=, since no other column has a usual name for it; the columns are a, b, c"},
		{"a,b,c", Column{}, nth(0), "e: expected src= in addition to dst=, since no other column has a usual name for it; the columns are a, b, c"},
		{"id,src,dst", named("dst"), Column{}, "e: expected dst= in addition to src=, since no"},
		{",a,b", named("b"), Column{}, "e: expected dst= in addition to src=, since no"},
		{"src,dst", named("dst"), Column{}, "e: expected dst= in addition to src=, which is column 'dst'"},
		{"a,b", Column{}, named("a"), "e: expected src= in addition to dst=, which is column 'a'"},
		{",", Column{}, nth(0), "e: expected src= in addition to dst=, which is column 0"},
		{"a,b", named("a"), nth(0), "e: src, dst: expected two columns, got column 'a' for both"},
		{"a,b", nth(2), nth(0), "e: src: expected at least 3 columns, got 2"},
		{"a,b", nth(1), nth(5), "e: dst: expected at least 6 columns, got 2"},
		{"a", nth(1), Column{}, "e: expected dst= in addition to src=, which is column 1"},
		{"a", Column{}, Column{}, "e: dst: expected at least 2 columns, got 1"},
		{"a,a", named("a"), nth(1), `e: src: expected one column "a", got two`},
	} {
		_, err := pick("e", strings.Split(k.names, ","), k.src, k.dst)
		if err == nil || !strings.HasPrefix(err.Error(), k.want) {
			t.Errorf("%s: got %v, want %s", k.names, err, k.want)
		}
	}
}

func TestHeadersAreFound(t *testing.T) {
	for content, want := range map[string][]int64{
		",user_id,item_id\n0,5,6\n": {5, 6},
		",a,b\n0,5,6\n":             {5, 6},
		"\"\",\"a\",\"b\"\n0,5,6\n": {5, 6},
		"0,1,\n":                    {0, 1},
		"user,item,9\n1,2,3\n":      {1, 2},
	} {
		s, err := Open(write(t, "e", content), "csv", Column{Mixed: true}, Column{})
		if err != nil {
			t.Errorf("%q: %v", content, err)
			continue
		}
		src, dst, err := scan(s)
		if err != nil || !slices.Equal(append(src, dst...), want) {
			t.Errorf("%q: got %v -> %v, %v, want %v", content, src, dst, err, want)
		}
	}
}
