package calibrate

import "testing"

// What has to hold on any machine: more work takes longer.
func TestMeasure(t *testing.T) {
	c, err := Measure()
	if err != nil {
		t.Fatal(err)
	}
	if !(c.Map < c.Exp && c.Map < c.Column && c.Column < c.Row && c.Row < 1000 && c.Draw > c.Map && c.Race > c.Map && c.Write > c.Map) {
		t.Errorf("got %+v", c)
	}
	t.Logf("%+v, %d operations", c, c.Operations())
}
