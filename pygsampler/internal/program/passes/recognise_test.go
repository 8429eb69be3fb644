package passes

import (
	"fmt"
	"strings"
	"testing"
)

// sage is two hops of GraphSAGE.
const sage = `
	%0 = seeds
	%1 = slice %0
	%2 = individual %1 k=10 replace=false site=0
	%3 = row %2
	%4 = union %0, %3
	%5 = slice %4
	%6 = individual %5 k=25 replace=false site=1
	return blocks %6, %2`

func TestNeighbors(t *testing.T) {
	change := func(old, by string) string {
		if !strings.Contains(sage, old) {
			t.Fatalf("no %q", old)
		}
		text := strings.ReplaceAll(sage, old, by)
		if strings.Contains(text, "%7 =") {
			text = strings.Replace(text, "blocks %6", "blocks %7", 1)
		}
		return text
	}
	for _, k := range []struct{ what, text, weight, want string }{
		{"two hops, outermost first", sage, "", "[25 10] false"},
		{"one hop", "%0 = seeds\n%1 = slice %0\n%2 = individual %1 k=-1 replace=true site=0\nreturn blocks %2", "", "[-1] true"},
		{"columns of the slice", change("union %0, %3\n\t%5 = slice %4\n\t%6 = individual %5", "column %1\n\t%5 = union %4, %3\n\t%6 = slice %5\n\t%7 = individual %6"), "", "[25 10] false"},
		{"weights", sage, "w", ""},
		{"another site", change("site=1", "site=2"), "", ""},
		{"sites the other way round", strings.NewReplacer("site=0", "site=1", "site=1", "site=0").Replace(sage), "", ""},
		{"one hop with replacement", change("k=25 replace=false", "k=25 replace=true"), "", ""},
		{"blocks the other way round", change("%6, %2", "%2, %6"), "", ""},
		{"rows alone", change("union %0, %3", "unique %3"), "", ""},
		{"rows before the rest", change("union %0, %3", "union %3, %0"), "", ""},
		{"something beside it", change("%6, %2", `%6, %2 "x"=%3`), "", ""},
		{"a draw by weight", change("individual %5 k", "individual %5, %5 k"), "", ""},
		{"distinct seeds", "%0 = seeds\n%1 = unique %0\n%2 = slice %1\n%3 = individual %2 k=1 replace=false site=0\nreturn blocks %3", "", ""},
		{"the same block twice", change("%6, %2", "%2, %2"), "", ""},
	} {
		t.Run(k.what, func(t *testing.T) {
			hops, is := Neighbors(parsed(t, k.text, k.weight))
			got := ""
			if is {
				got = fmt.Sprint(hops.Fanouts, hops.Replace)
			}
			if got != k.want {
				t.Errorf("got %q, want %q", got, k.want)
			}
		})
	}
}
