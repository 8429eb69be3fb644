package csc

import "sync"

// DerivedCache holds values that are derived from a graph and its named arrays only, by a text that
// identifies them: a value is computed once and lives as long as the graph. Changes of arrays in
// place do not change it. Any number of goroutines may use it; the zero value is empty.
type DerivedCache struct {
	mu   sync.Mutex
	made map[string]any
}

// Get returns the value under a text, or nil.
func (k *DerivedCache) Get(text string) any {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.made[text]
}

// Put stores a value unless there is one already, and returns the stored value.
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
