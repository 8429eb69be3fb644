package pygsampler

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// documentCase is a document, and the text that it is read back as.
type documentCase struct{ document, want string }

// refusalCase is a document that is an error.
type refusalCase struct {
	document string
	kind     Kind
	text     string
}

// Defaults are written to the document, and reading a written document gives the same one.
func TestNewSampler(t *testing.T) {
	for _, k := range append([]documentCase{
		{
			`{"family": "neighbor", "fanouts": [10, -1, 0, 2147483647], "prob": "w", "map_bytes": 7}`,
			`{"family": "neighbor", "fanouts": [10,-1,0,2147483647], "replace": false, "frontier": "all", ` +
				`"disjoint": false, "ordered": true, "prob": "w", "mask": null, "edge_weights": null, "map_bytes": 7, "mode": "auto"}`,
		},
	}, documentsOfBuild...) {
		p, err := NewSampler(k.document, math.MaxUint64-4)
		if err != nil {
			t.Fatal(err)
		}
		if p.Document != k.want || p.Seed != 1<<64-5 {
			t.Errorf("seed %d\n got %s\nwant %s", p.Seed, p.Document, k.want)
		}
		if again, err := NewSampler(p.Document, 0); err != nil || again.Document != p.Document {
			t.Errorf("got %v, %v", again, err)
		}
	}
}

func TestPlansThatAreRefused(t *testing.T) {
	for _, k := range append([]refusalCase{
		{`[]`, KindValue, "plan: expected a JSON object, got "},
		{`{`, KindValue, "plan: expected a JSON object, got "},
		{`{}`, KindValue, "family: expected one of " + familyNames + ", got ''"},
		{`{"family": "best"}`, KindValue, "family: expected one of " + familyNames + ", got 'best'"},
		{`{"family": 3}`, KindType, "family: expected the name of a family of samplers, got int 3"},
		{`{"family": "neighbor"}`, KindType, "fanouts: expected a sequence of int, outermost hop first, got NoneType None"},
		{`{"family": "neighbor", "fanouts": "10"}`, KindType, "fanouts: expected a sequence of int, outermost hop first, got str '10'"},
		{`{"family": "neighbor", "fanouts": {"got": "set {10}"}}`, KindType, "fanouts: expected a sequence of int, outermost hop first, got set {10}"},
		{`{"family": "neighbor", "fanouts": []}`, KindValue, "fanouts: expected 1 to 256 hops, got 0"},
		{`{"family": "neighbor", "fanouts": [` + strings.Repeat("0,", 256) + `0]}`, KindValue, "fanouts: expected 1 to 256 hops, got 257"},
		{`{"family": "neighbor", "fanouts": [3, -2]}`, KindValue, "fanouts[1]: expected an integer >= -1, got -2"},
		{`{"family": "neighbor", "fanouts": [2147483648]}`, KindValue, "fanouts[0]: expected at most 2147483647 (-1 for all), got 2147483648"},
		{`{"family": "neighbor", "fanouts": [1e3]}`, KindType, "fanouts[0]: expected an integer >= -1, got float 1e3"},
		{`{"family": "neighbor", "fanouts": [3, [10, 10]]}`, KindType, "fanouts[1]: expected an integer >= -1, got list [10, 10]"},
		{`{"family": "neighbor", "fanouts": [99999999999999999999]}`, KindValue, "fanouts[0]: expected at most 2147483647 (-1 for all), got 99999999999999999999"},
		{`{"family": "neighbor", "fanouts": [3], "mode": "fast"}`, KindValue, "mode: expected one of ('auto', 'persistent'), got str 'fast'"},
		{`{"family": "neighbor", "fanouts": [3], "replace": null}`, KindType, "replace: expected True or False, got NoneType None"},
		{`{"family": "neighbor", "fanouts": [3], "replace": 1}`, KindType, "replace: expected True or False, got int 1"},
		{`{"family": "neighbor", "fanouts": [3], "prob": "w", "mask": "m"}`, KindValue, "prob, mask: expected at most one of them, got both; weights of 0 leave edges out as a mask does"},
		{`{"family": "neighbor", "fanouts": [3], "prob": ""}`, KindValue, "prob: expected the name of an edge array, got ''"},
		{`{"family": "neighbor", "fanouts": {"got": "list", "length": 70000}}`, KindValue, "fanouts: expected 1 to 256 hops, got 70000"},
		{`{"family": "neighbor", "fanouts": [{"got": "int 3"}]}`, KindType, "fanouts[0]: expected an integer >= -1, got int 3"},
		{`{"family": "neighbor", "fanouts": [-` + strings.Repeat("9", 50) + `]}`, KindValue, "fanouts[0]: expected an integer >= -1, got one of 50 digits"},
		{`{"family": "neighbor", "fanouts": [3], "prob": true}`, KindType, "prob: expected the name of an edge array, got bool True"},
		{`{"family": "neighbor", "fanouts": [3], "map_bytes": 0}`, KindValue, "map_bytes: expected an integer from 1 to 9223372036854775807, got 0"},
		{`{"family": "neighbor", "fanouts": [3], "stop": 0.5}`, KindType, "stop: expected no such option here, got float 0.5"},
		{`{"family": "neighbor", "fanouts": [3], "edge_weights": "hajek"}`, KindValue, "edge_weights: expected None or 'ht', got str 'hajek'"},
	}, refusalsOfBuild...) {
		_, err := NewSampler(k.document, 0)
		if kind, text := KindOf(err); kind != k.kind || !strings.HasPrefix(text, k.text) || text != k.text && !strings.HasSuffix(k.text, "got ") {
			t.Errorf("%.90s: got %s: %s, want %s: %s", k.document, kind, text, k.kind, k.text)
		}
	}
}

// planOf is a plan of fanouts in a mode.
func planOf(mode string, replace bool, seed uint64, fanouts []int64) (*Sampler, error) {
	family := mode
	if mode == "auto" || mode == "persistent" {
		family = "neighbor"
	}
	text := strings.ReplaceAll(fmt.Sprint(append([]int64{}, fanouts...)), " ", ",")
	return NewSampler(fmt.Sprintf(`{"family": %q, "fanouts": %s, "replace": %v}`, family, text, replace), seed)
}
