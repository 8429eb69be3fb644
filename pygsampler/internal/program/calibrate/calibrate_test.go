package calibrate

import (
	"reflect"
	"testing"
)

// On any machine, however busy, each cost is positive, and far below the time of a batch.
func TestMeasure(t *testing.T) {
	c, err := Measure()
	if err != nil {
		t.Fatal(err)
	}
	values := reflect.ValueOf(c)
	for i := range values.NumField() {
		if ns := values.Field(i).Float(); !(ns > 0 && ns < 1e6) {
			t.Errorf("%s: expected nanoseconds an element, got %v", values.Type().Field(i).Name, ns)
		}
	}
	t.Logf("%+v, %d operations", c, c.Operations())
}
