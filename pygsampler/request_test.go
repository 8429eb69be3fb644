package pygsampler

// submit begins a request for a graph on the CPU.
func submit(g *Relation, p *Sampler, r Request) (*HostJob, error) {
	j, err := Submit(Homogeneous(g), p, &r)
	if err != nil {
		return nil, err
	}
	return j.(*HostJob), nil
}

// sample is submit for a caller who waits at once.
func sample(g *Relation, p *Sampler, r Request) (*HostJob, error) {
	r.Prompt = true
	return submit(g, p, r)
}

// deviceSubmit begins a request for a graph on a device.
func deviceSubmit(g *Relation, p *Sampler, r Request) (*DeviceJob, error) {
	j, err := submitOnDevice(Homogeneous(g), p, &r)
	if err != nil {
		return nil, err
	}
	return j.(*DeviceJob), nil
}
