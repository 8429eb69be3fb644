package program

import (
	"strings"
	"testing"
)

const projected = "%0 = seeds\n%1 = slice %0\n%2 = features name=\"x\"\n%3 = project %2 name=\"W\"\n%4 = dot %1, %3, %3\n%5 = filter %1, %4\nreturn blocks %5"

func TestInputsAreChecked(t *testing.T) {
	for _, c := range []struct {
		inputs []string
		want   string
	}{
		{[]string{"W", "1,1", "AACAPw=="}, ""},
		{[]string{"W", "1,1"}, "expected a name, a shape and numbers"},
		{[]string{"V", "1,1", "AACAPw=="}, `%3: project: expected an input "W", got none`},
		{[]string{"W", "1,1,1", "AACAPw=="}, `%3: @: expected an input of 1 or 2 dimensions, got "W" of 3`},
		{[]string{"W", "1,0", ""}, "expected a shape of positive numbers"},
		{[]string{"W", "65536,65536", ""}, "expected fewer than 2**31 numbers"},
		{[]string{"W", "1,2", "AACAPw=="}, "expected 2 numbers in base64"},
		{[]string{"W", "1,1", "!"}, "expected 1 numbers in base64"},
	} {
		p, err := Parse(projected, "")
		if err != nil {
			t.Fatal(err)
		}
		err = p.Bind(c.inputs)
		if c.want == "" && (err != nil || p.Nodes[3].Tensor.Data[0] != 1) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: got %v", c.inputs, err)
		}
	}
}

func TestContentsTellNodesApart(t *testing.T) {
	keys := map[string]bool{}
	for _, numbers := range []string{"AACAPw==", "AAAAQA=="} {
		p, err := Parse(projected, "")
		if err == nil {
			err = p.Bind([]string{"W", "1,1", numbers})
		}
		if err != nil {
			t.Fatal(err)
		}
		keys[p.Nodes[3].Key()] = true
	}
	if len(keys) != 2 {
		t.Errorf("got keys %v", keys)
	}
}

func TestDenseRowsGoWithTheirMatrix(t *testing.T) {
	for _, c := range [][2]string{
		{"%0 = seeds\n%1 = slice %0\n%2 = features name=\"x\"\n%3 = take %2, %0\n%4 = dot %1, %3, %2\nreturn blocks %4", "rows along the matrix's rows"},
		{"%0 = seeds\n%1 = slice %0\n%2 = features name=\"x\"\n%3 = take %2, %0\n%4 = dot %1, %2, %3\nreturn blocks %4", "rows along the matrix's columns"},
		{"%0 = seeds\n%1 = features name=\"x\"\n%2 = neg %1\nreturn vectors \"a\"=%2", "neg: expected values as input 0, got dense rows"},
	} {
		if _, err := Parse(c[0], ""); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("got %v, not %q", err, c[1])
		}
	}
}
