//go:build noresearch

package pygsampler

// anotherMode makes the batches of mode "auto", today in the same way.
const anotherMode = "persistent"

const familyNames = "[context hgt labor neighbor program rows temporal typed walk]"

var documentsOfBuild []documentCase

// Modes of papers are errors that list what there is.
var refusalsOfBuild = []refusalCase{
	{`{"family": "bsp", "fanouts": [3]}`, KindValue, "family: expected one of " + familyNames + ", got 'bsp'"},
	{`{"family": "fused", "fanouts": [3]}`, KindValue, "family: expected one of " + familyNames + ", got 'fused'"},
	{`{"family": "khop", "fanouts": [3]}`, KindValue, "family: expected one of " + familyNames + ", got 'khop'"},
	{`{"family": "queue", "fanouts": [3]}`, KindValue, "family: expected one of " + familyNames + ", got 'queue'"},
	{`{"family": "reservoir", "fanouts": [3]}`, KindValue, "family: expected one of " + familyNames + ", got 'reservoir'"},
	{`{"family": "walk", "length": 3, "execution": "transit"}`, KindValue, "execution: expected one of ('auto', 'sample'), got str 'transit'"},
}
