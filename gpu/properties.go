package gpu

import (
	"sync"

	"github.com/mumax/3/cuda/cu"
)

// Properties are the limits and capabilities of a device that launches depend on. They never
// change. Sizes are in bytes.
type Properties struct {
	Name                     string
	Major, Minor             int  // compute capability; 9, 0 is sm_90
	Multiprocessors          int  // streaming multiprocessors (SMs)
	L2                       int  // size of the L2 cache
	SharedPerBlock           int  // shared memory that every kernel may use
	SharedPerBlockOptIn      int  // the most a kernel may have after AllowShared
	SharedPerMultiprocessor  int  // what the blocks on one multiprocessor share out
	ThreadsPerMultiprocessor int  // resident threads
	BlocksPerMultiprocessor  int  // resident blocks
	Cooperative              bool // cooperative launches
	Pools                    bool // stream-ordered allocation
	MapsHost                 bool // kernels can read pinned host memory
	RegistersHost            bool // host memory of others can be pinned in place
	RegistersReadOnly        bool // also where its pages may only be read
	Maps                     bool // memory without an address of its own, which is mapped where it is wanted
	MapsElsewhere            bool // also in other processes, by file descriptors
	Memory                   int64
}

// properties keeps what devices can do, by index.
var properties sync.Map

// DeviceProperties returns the properties of device i, which it reads once.
func DeviceProperties(i int) (p Properties, err error) {
	if known, ok := properties.Load(i); ok {
		return known.(Properties), nil
	}
	dev, err := device(i)
	if err != nil {
		return p, err
	}
	if p.Name, err = DeviceName(i); err != nil {
		return p, err
	}
	// Numbers of CUdevice_attribute; mumax names few of them.
	numbers := []struct {
		attribute cu.DeviceAttribute
		value     *int
	}{
		{computeCapabilityMajor, &p.Major},
		{computeCapabilityMinor, &p.Minor},
		{cu.MULTIPROCESSOR_COUNT, &p.Multiprocessors},
		{cu.L2_CACHE_SIZE, &p.L2},
		{cu.MAX_SHARED_MEMORY_PER_BLOCK, &p.SharedPerBlock},
		{97, &p.SharedPerBlockOptIn},
		{81, &p.SharedPerMultiprocessor},
		{cu.MAX_THREADS_PER_MULTIPROCESSOR, &p.ThreadsPerMultiprocessor},
		{106, &p.BlocksPerMultiprocessor},
	}
	abilities := []struct {
		attribute cu.DeviceAttribute
		value     *bool
	}{
		{95, &p.Cooperative},
		{115, &p.Pools},
		{cu.CAN_MAP_HOST_MEMORY, &p.MapsHost},
		{99, &p.RegistersHost},
		{113, &p.RegistersReadOnly},
		{102, &p.Maps},
		{103, &p.MapsElsewhere},
	}
	err = try("cuDeviceGetAttribute", func() {
		for _, n := range numbers {
			*n.value = dev.Attribute(n.attribute)
		}
	})
	// A driver that is older than an ability does not know its number.
	for _, a := range abilities {
		if err != nil {
			return Properties{}, err
		}
		err = try("cuDeviceGetAttribute", func() { *a.value = dev.Attribute(a.attribute) != 0 })
		if code(err) == invalidValue {
			*a.value, err = false, nil
		}
	}
	if err == nil {
		err = try("cuDeviceTotalMem", func() { p.Memory = dev.TotalMem() })
	}
	if err != nil {
		return Properties{}, err
	}
	properties.Store(i, p)
	return p, nil
}

// CanAccessPeer reports whether kernels on device i can use memory of device peer.
func CanAccessPeer(i, peer int) (can bool, err error) {
	a, err := device(i)
	if err != nil {
		return false, err
	}
	b, err := device(peer)
	if err != nil {
		return false, err
	}
	err = try("cuDeviceCanAccessPeer", func() { can = a.CanAccessPeer(b) })
	return can, err
}
