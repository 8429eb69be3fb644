//go:build !noresearch

package pygsampler

// anotherMode makes the batches of mode "auto" in another way.
const anotherMode = "queue"

const familyNames = "[bsp context fused hgt khop labor neighbor program queue reservoir rows temporal typed walk]"

var documentsOfBuild = []documentCase{
	{
		`{"replace": true, "fanouts": [1], "family": "queue", "ordered": false, "map_bytes": null}`,
		`{"family": "queue", "fetch_size": null, "fanouts": [1], "replace": true, "frontier": "all", ` +
			`"disjoint": false, "ordered": false, "prob": null, "mask": null, "edge_weights": null, "map_bytes": null}`,
	},
	{
		`{"fanouts": [1], "family": "queue", "fetch_size": 5}`,
		`{"family": "queue", "fetch_size": 5, "fanouts": [1], "replace": false, "frontier": "all", ` +
			`"disjoint": false, "ordered": true, "prob": null, "mask": null, "edge_weights": null, "map_bytes": null}`,
	},
}

var refusalsOfBuild = []refusalCase{
	{`{"family": "bsp", "fanouts": [3], "frontier": "new"}`, KindValue, "mode: expected 'auto' or 'persistent' with frontier='new', got 'bsp'"},
	{`{"family": "queue", "fanouts": [3], "disjoint": true}`, KindValue, "mode: expected 'auto' or 'persistent' with disjoint=True, got 'queue'"},
	{`{"family": "queue", "fanouts": [3], "edge_weights": "ht"}`, KindValue, "mode: expected 'auto' or 'persistent' with edge_weights='ht', got 'queue'"},
	{`{"family": "queue", "fanouts": [3], "fetch_size": 257}`, KindValue, "fetch_size: expected an integer from 1 to 256, got 257"},
	{`{"family": "bsp", "fanouts": [3], "fetch_size": 5}`, KindType, "fetch_size: expected no such option here, got int 5"},
	{`{"family": "fused", "fanouts": [3], "mask": "m"}`, KindValue, "mode: expected 'auto' or 'persistent' with mask, got 'fused'"},
	{`{"family": "walk", "length": 3, "execution": "best"}`, KindValue, "execution: expected one of ('auto', 'sample', 'transit', 'transit_uncached', 'transit_plain'), got str 'best'"},
	{`{"family": "walk", "length": 3, "execution": "transit", "layout": "packed"}`, KindValue, "layout: expected 'auto' or 'csr' with execution='transit', which needs no packed edges, got 'packed'"},
	{`{"family": "walk", "length": 3, "execution": "transit_plain", "roots": 2}`, KindValue, "execution: expected 'auto' or 'sample' with roots, got 'transit_plain'"},
}
