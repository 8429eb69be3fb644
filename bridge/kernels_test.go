package bridge

import (
	"encoding/json"
	"testing"
)

func TestDeviceKernels(t *testing.T) {
	n, err := DeviceCount()
	if err != nil {
		t.Fatal(err)
	}
	for _, device := range []int64{-1, n, 1 << 40} {
		_, err := DeviceKernels(device)
		fails(t, err, "")
		if name, nameErr := DeviceName(device); nameErr == nil || err.Error() != nameErr.Error() {
			t.Errorf("device %d: got %v, and as name %q, %v", device, err, name, nameErr)
		}
	}
	for device := range n {
		text, err := DeviceKernels(device)
		if err != nil {
			t.Fatal(err)
		}
		var r struct {
			Name, Error string
			Kernels     []struct{ Name, Code, Error string }
		}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		if r.Name == "" || r.Error != "" {
			t.Errorf("device %d: got %s", device, text)
		}
		for _, k := range r.Kernels {
			if k.Name == "" || k.Code == "" || k.Error != "" {
				t.Errorf("device %d: got %+v", device, k)
			}
		}
	}
}
