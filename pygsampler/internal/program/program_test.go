package program

import (
	"strings"
	"testing"
)

const ladies = `%0 = seeds
%1 = slice %0
%2 = const value=2
%3 = pow %1, %2
%4 = sum %3 axis=1
%5 = collective %1, %4 k=4 replace=false site=0
%6 = div %5, %4 axis=1
%7 = sum %6 axis=0
%8 = div %6, %7 axis=0
%9 = row %8
%10 = union %0, %9
return blocks %8 "p"=%4 "a b"=%10`

func TestTexts(t *testing.T) {
	p, err := Parse(ladies, "w")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.String(); got != ladies {
		t.Errorf("got\n%s\nwant\n%s", got, ladies)
	}
	if p.Weight != "w" || p.Nodes[6].Type != (Type{Kind: Matrix, Edges: 5}) || p.Nodes[7].Type.Along != (Along{Columns, 1}) {
		t.Errorf("got %+v", p.Nodes[7].Type)
	}
}

func TestRefusedTexts(t *testing.T) {
	head := strings.Join(strings.Split(ladies, "\n")[:5], "\n") + "\n"
	for text, want := range map[string]string{
		"":                                "return: expected",
		"%1 = seeds":                      "return: expected",
		"%0 = seed\nreturn blocks %0":     `%0: expected an operator, got "seed"`,
		"%0 = slice %0\nreturn blocks %0": "%0: expected a node before %0",
		"%0 = seeds\n%1 = slice %-1\nreturn blocks %1":                               "expected a node before %1",
		head + "%5 = collective %1, %4 k=-2 replace=false site=0\nreturn blocks %5":  "k: expected an integer",
		head + "%5 = collective %1, %4 k=2 replace=false site=256\nreturn blocks %5": "at most 256",
		head + "%5 = collective %1, %4 k=2 site=0\nreturn blocks %5":                 "expected replace=, got none",
		head + "%5 = sum %3\nreturn blocks %3":                                       "axis: expected 0",
		head + "%5 = mul %1, %4 axis=0\nreturn blocks %5":                            "expected a vector along the matrix's columns",
		head + "%5 = whole\n%6 = mul %5, %4 axis=1\nreturn blocks %6":                "expected a vector along the matrix's rows",
		head + "return blocks %4":                                                    "%4: expected a matrix",
		head + "return blocks %3 \"a\"=%2":                                           `"a": expected a vector, dense rows or a list, got a scalar`,
		head + "return blocks %3 \"a\"=%4 \"a\"=%4":                                  `"a": expected a name once`,
		head + "return blocks %3 \"a\"[1]=%3":                                        "expected the place of a matrix",
		head + "return blocks %3 \"a\"[0]=%4":                                        "expected values of the same edges as %3",
		head + "return blocks %3 \"w\"[0]=%3":                                        "expected another name than w",
		head + "return blocks ~%4":                                                   "%4: expected a matrix",
		head + "%5 = row %1\nreturn subgraph %5, %1":                                 "expected the matrix A[list, list]",
		"%0 = seeds\n%1 = unique %0\n%2 = slice %1\nreturn subgraph %1, %2":          "expected the matrix A[list, list]",
		"%0 = seeds\n%1 = unique %0\n%2 = slice %1\nreturn subgraph %1, %1":          "expected the matrix A[list, list]",
		"%0 = seeds\n%1 = degree\n%2 = slice %0\n%3 = gather %1, %0\n%4 = draw %3 k=2 replace=false site=0\n%5 = cross %4, %4\nreturn blocks %5": "lists of distinct nodes",
		head + "%5 = random %3 site=3\n%6 = random %3 site=3\nreturn blocks %3":                                                                  "draws at site 3 as %5 does",
		head + "%5 = collective %1, %4 k=2 replace=true site=0\n%6 = random site=0\nreturn blocks %5":                                            "draws at site 0 as %5 does",
		head + "%5 = collective %1, %4 k=2 replace=false site=0\n%6 = random %5 site=0\nreturn blocks %5":                                        "draws at site 0 as %5 does",
	} {
		if _, err := Parse(text, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// The numbers of a race may be looked at.
func TestTheNumbersOfARace(t *testing.T) {
	head := strings.Join(strings.Split(ladies, "\n")[:5], "\n") + "\n"
	if _, err := Parse(head+"%5 = collective %1, %4 k=2 replace=false site=0\n%6 = random site=0\nreturn blocks %5", ""); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(ladies)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text, "")
		if err != nil {
			return
		}
		again, err := Parse(p.String(), "")
		if err != nil || again.String() != p.String() {
			t.Fatalf("%q became %q: %v", text, p, err)
		}
	})
}

func TestPlacesOfArraysBesideTheBlocks(t *testing.T) {
	text := strings.Join([]string{
		"%0 = seeds", "%1 = unique %0", "%2 = slice %0", "%3 = slice %1", "%4 = degree", "%5 = gather %4, %0",
		"%6 = gather %4, %1", "%7 = count %2 axis=0", "%8 = count %3 axis=0", "%9 = count %2 axis=1", "%10 = row %2",
		"%11 = union %1, %10", "%12 = cross %11, %11", "%13 = gather %4, %11", "%14 = count %12 axis=0",
	}, "\n") + "\n"
	named := ` "d"=%4 "given"=%5 "s"=%6 "c"=%7 "k"=%8 "r"=%9 "l"=%10 "v"=%13 "n"=%14`
	for kind, want := range map[string]string{
		"return vectors":            "all_nodes seeds unique_seeds unique_seeds unique_seeds - - - -",
		"return blocks %2":          "all_nodes seeds unique_seeds unique_seeds unique_seeds - - - -",
		"return subgraph %11, %12":  "all_nodes seeds unique_seeds unique_seeds unique_seeds - - nodes nodes",
		"return subgraph %11, ~%12": "all_nodes seeds unique_seeds unique_seeds unique_seeds - - nodes nodes",
	} {
		p, err := Parse(text+kind+named, "")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, place := range p.Places() {
			if place == "" {
				place = "-"
			}
			got = append(got, place)
		}
		if found := strings.Join(got, " "); found != want {
			t.Errorf("%s: got %s, want %s", kind, found, want)
		}
	}
}
