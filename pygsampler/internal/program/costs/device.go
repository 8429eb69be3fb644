package costs

// Device holds the costs of a GPU for finding A[R, S] in both ways, in nanoseconds of the whole
// GPU.
type Device struct {
	In   float64 `json:"in"`   // of an in-edge of S that is looked at
	Bit  float64 `json:"bit"`  // of the bit of one, where out-edges of R are taken
	Out  float64 `json:"out"`  // of an out-edge that is taken and put where it stands
	More float64 `json:"more"` // of a batch that takes them, for the meetings of its blocks
	Turn float64 `json:"turn"` // of an edge, to find all out-edges of a graph
}

// DeviceElsewhere holds the costs of an H200, for machines whose GPU has not been measured.
var DeviceElsewhere = Device{In: 0.017, Bit: 0.0007, Out: 0.11, More: 600, Turn: 0.085}

var knownDevice = of[Device]{name: "costs-gpu.json", numbers: func(d Device) []float64 { return []float64{d.In, d.Bit, d.Out, d.More, d.Turn} }}

// MeasuredDevice returns the costs measured on this machine's GPU; if there are none, here is false
// and the costs are DeviceElsewhere.
func MeasuredDevice() (d Device, here bool) { return knownDevice.orElse(DeviceElsewhere) }

// Keep writes the costs to the file that KnownDevice reads, and returns its path.
func (d Device) Keep() (path string, err error) { return knownDevice.keep(d) }
