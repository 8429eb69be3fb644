package bridge

import (
	"encoding/json"
	"testing"
)

// FuzzFiles calls the functions for files and for counts with any numbers and plans
// where that is safe. Numbers are those of nothing that is open; each answers with a
// value or with an error of the right form, and what it began it ends.
func FuzzFiles(f *testing.F) {
	plans := []string{
		"", "{", "null", "[]", `"x"`, `{"path": 3}`, `{"path": ""}`, `{"path": "/nowhere/at/all"}`,
		`{"sections": [{"name": "indptr", "dtype": "int64", "shape": [-1]}]}`, "{\"path\": \"\\u0000\"}",
	}
	for function := range byte(12) {
		for i, plan := range plans {
			f.Add(function, plan, int64(i), int64(-1), int64(1<<62))
		}
		f.Add(function, "\xff\x00", int64(-1<<63), int64(1<<63-1), int64(64))
	}
	f.Fuzz(func(t *testing.T, function byte, text string, a, b, c int64) {
		// A plan that names a file is one that somebody could have made on purpose.
		var plan map[string]any
		if json.Unmarshal([]byte(text), &plan) == nil && len(plan) > 1 {
			return
		}
		nobody := a | 1<<61
		var err error
		switch function % 12 {
		case 0:
			_, err = GraphFileHeader(min(a, -1), text)
		case 1:
			_, err = GraphFileChecksum(a, 0, min(b, 0))
		case 2:
			_, err = graphNew("", onCPU, 0, c, a, 0, c, b, 0, c, a, 0, 0, 1, 0, 0, 0)
		case 3:
			var writer int64
			if writer, err = GraphFileCreate(text); err == nil {
				if _, e := GraphFileAbort(writer); e != nil {
					t.Error(e)
				}
			}
		case 4:
			_, err = GraphFileWrite(nobody, b, c, 0, a)
		case 5:
			_, err = GraphFileCommit(nobody, b)
		case 6:
			_, err = GraphFileAbort(nobody)
		case 7:
			var job int64
			if job, err = EdgesStart(text); err == nil {
				if _, e := EdgesCancel(job); e != nil {
					t.Error(e)
				}
			}
		case 8:
			if _, err = EdgesPoll(nobody, b); err != nil {
				_, _ = EdgesTake(nobody)
			}
		case 9:
			_, err = DegreesNew(nobody, b)
		case 10:
			_, err = DegreesAdvance(nobody, b)
		case 11:
			if _, err = DegreesProfile(nobody); err != nil {
				_, _ = DegreesClose(nobody)
			}
		}
		if err != nil && !message.MatchString(err.Error()) {
			t.Errorf("function %d: got %q", function%12, err)
		}
	})
}
