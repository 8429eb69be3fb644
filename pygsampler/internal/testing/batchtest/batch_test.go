package batchtest

import (
	"reflect"
	"testing"
)

// parts are the batch and its second block, field by field.
func parts(b *Batch) [2]reflect.Value {
	return [2]reflect.Value{reflect.ValueOf(b).Elem(), reflect.ValueOf(&b.Blocks[1]).Elem()}
}

// Equal sees every field.
func TestEqual(t *testing.T) {
	full := func() Batch {
		b := Batch{Blocks: make([]Block, 2)}
		for _, part := range parts(&b) {
			for i := range part.NumField() {
				switch f := part.Field(i); f.Interface().(type) {
				case int64:
					f.SetInt(7)
				case []int64:
					f.Set(reflect.ValueOf([]int64{7, 8}))
				case []float32:
					f.Set(reflect.ValueOf([]float32{7, 8}))
				}
			}
		}
		return b
	}
	if !full().Equal(full()) {
		t.Error("a batch differs from itself")
	}
	whole := full()
	for k, part := range parts(&whole) {
		for i := range part.NumField() {
			b := full()
			parts(&b)[k].Field(i).SetZero()
			if b.Equal(full()) || full().Equal(b) {
				t.Errorf("%s: nothing instead of something passes", part.Type().Field(i).Name)
			}
		}
	}
}
