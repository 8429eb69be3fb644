package costs

// Device is what a GPU takes to find A[R, S] by either way, in nanoseconds of all of it.
type Device struct {
	In   float64 `json:"in"`   // of an in-edge of S that is looked at
	Bit  float64 `json:"bit"`  // of the bit of one, where out-edges of R are taken
	Out  float64 `json:"out"`  // of an out-edge that is taken and put where it stands
	More float64 `json:"more"` // of a batch that takes them, for the meetings of its blocks
	Turn float64 `json:"turn"` // of an edge, to find all out-edges of a graph
}

// DeviceElsewhere is for machines whose GPU nobody has measured: what an H200 takes.
var DeviceElsewhere = Device{In: 0.017, Bit: 0.0007, Out: 0.11, More: 600, Turn: 0.085}

var knownDevice = of[Device]{name: "costs-gpu.json", numbers: func(d Device) []float64 { return []float64{d.In, d.Bit, d.Out, d.More, d.Turn} }}

// MeasuredDevice are those that were measured of this machine's GPU; else, and here is false, those of another.
func MeasuredDevice() (d Device, here bool) { return knownDevice.orElse(DeviceElsewhere) }

// Keep writes the costs where KnownDevice finds them, and says where that is.
func (d Device) Keep() (path string, err error) { return knownDevice.keep(d) }
