package finalizer

import "testing"

// A destructor reaches the function of its kind, and nothing that one does gets out.
func TestEnd(t *testing.T) {
	var ended [2]int64
	Set([]func(int64){
		func(number int64) { ended[0] = number },
		func(number int64) { ended[1] = number; panic("nobody hears it") },
	})
	pgs_finalizer_end(0, 7)
	pgs_finalizer_end(1, 8)
	pgs_finalizer_end(2, 9)
	pgs_finalizer_end(-1, 9)
	if ended != [2]int64{7, 8} {
		t.Errorf("ended %v, want [7 8]", ended)
	}
	if Destructor() == 0 {
		t.Error("the destructor has no address")
	}
}
