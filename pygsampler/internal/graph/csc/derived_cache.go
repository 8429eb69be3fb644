package csc

import "sync"

// DerivedCache is what was made of a graph and its named arrays alone, by a text that says what it
// is: it is made once, and goes with the graph. Arrays that are changed in place leave it as
// it is. Any number of goroutines may use it; the zero value is empty.
type DerivedCache struct {
	mu   sync.Mutex
	made map[string]any
}

// Get is what stands under a text; nil: nothing.
func (k *DerivedCache) Get(text string) any {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.made[text]
}

// Put keeps a value unless there is one already, and returns the one that is kept.
func (k *DerivedCache) Put(text string, value any) any {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old, there := k.made[text]; there {
		return old
	}
	if k.made == nil {
		k.made = map[string]any{}
	}
	k.made[text] = value
	return value
}
