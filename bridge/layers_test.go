package bridge

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Words of a reduction.
const (
	ofX = iota
	ofIndptr
	ofIndices
	ofWeights
	ofOut
	ofBest
	ofSources
	ofRows
	ofEdges
	ofWidth
	ofHeads
	ofKind
	ofIDBits
	ofFloatBits
	ofBrain
	ofIDs
	ofTable
	ofDegrees
	ofPlaces
	ofPiece
	ofRoom
	ofRoomBytes
)

// Each word that cannot be right is named, before a device is asked for.
func TestSegmentArguments(t *testing.T) {
	for want, change := range map[string]map[int]int64{
		"TypeError: segments: expected ids of 32 or 64 bits and floats of 16, 32 or 64, got ids of 16 and floats of 32": {ofIDBits: 16},
		"TypeError: segments: expected ids of 32 or 64 bits and floats of 16, 32 or 64, got ids of 64 and floats of 8":  {ofFloatBits: 8},
		"ValueError: segments: expected a kind from 0 to 2, got 4":                                                      {ofKind: 4},
		"ValueError: segments: expected a kind from 0 to 2, got -1":                                                     {ofKind: -1},
		"ValueError: segments: expected an address of the best rows, got 0":                                             {ofKind: 3},
		"ValueError: segments: expected sizes >= 0 and heads that divide the width":                                     {ofHeads: 3},
		"ValueError: segments: expected sizes >= 0":                                                                     {ofRows: -1},
		"ValueError: segments: expected addresses":                                                                      {ofX: 0},
		"ValueError: segments: expected a width of at most 1048576 and at most 65535 heads, got":                        {ofWidth: 1<<20 + 1},
		"ValueError: segments: expected a width of at most":                                                             {ofWidth: 1 << 17, ofHeads: 1 << 16},
		"ValueError: x: expected an address that 4 divides, got 0x42":                                                   {ofX: 66},
		"ValueError: x: expected an address that 8 divides, got 0x44":                                                   {ofX: 68, ofFloatBits: 64},
		"ValueError: indptr: expected an address that 8 divides, got 0x44":                                              {ofIndptr: 68},
		"ValueError: indices: expected an address that 8 divides, got 0x44":                                             {ofIndices: 68},
		"ValueError: weights: expected an address that 4 divides, got 0x1":                                              {ofWeights: 1},
		"ValueError: out: expected an address that 4 divides, got 0x43":                                                 {ofOut: 67},
		"ValueError: best: expected an address that 8 divides, got 0x4":                                                 {ofBest: 4},
		"ValueError: of: expected an address that 8 divides, got 0x4":                                                   {ofIDs: 4},
		"ValueError: degrees: expected an address that 8 divides, got 0x4":                                              {ofDegrees: 4},
		"ValueError: places: expected an address that 8 divides, got 0x4":                                               {ofPlaces: 4, ofWeights: 64},
		"ValueError: segments: expected a row of x for each of 5 sources, or ids, got 7 rows":                           {ofTable: 7},
		"ValueError: segments: expected degrees alone":                                                                  {ofDegrees: 64, ofWeights: 64},
		"ValueError: segments: expected at most 4294967294 sources and rows of x, got 5 and":                            {ofIDs: 64, ofTable: 1 << 32},
	} {
		list := []int64{64, 64, 64, 0, 64, 0, 5, 2, 3, 4, 1, 0, 64, 32, 0, 0, 5, 0, 0, 0, 0, 0}
		for at, value := range change {
			list[at] = value
		}
		_, reduced := SegmentReduce(0, address(list), 0, 0)
		_, multiplied := SegmentDots(0, address(list), 64, 0)
		for _, err := range []error{reduced, multiplied} {
			fails(t, err, "")
			if !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		runtime.KeepAlive(list)
	}
	list := []int64{64, 64, 64, 0, 64, 0, 5, 2, 3, 4, 1, 0, 64, 32, 0, 0, 5, 0, 0, 8, 68, 15}
	_, err := SegmentReduce(0, address(list), 0, 4)
	fails(t, err, "ValueError: bad: expected an address that 8 divides, got 0x4")
	_, err = SegmentReduce(0, address(list), 0, 0)
	fails(t, err, "ValueError: room: expected 16 bytes, got 15 at 0x44")
	list[ofRoomBytes] = 16
	_, err = SegmentReduce(0, address(list), 0, 0)
	fails(t, err, "ValueError: room: expected an address that 8 divides, got 0x44")
	_, err = SegmentDots(0, address(list), 0, 0)
	fails(t, err, "ValueError: dots: expected an address, got 0")
	_, err = SegmentDots(0, address(list), 66, 0)
	fails(t, err, "ValueError: dots: expected an address that 4 divides, got 0x42")
	const room = 12*3 + 4*(1025+5)
	for want, w := range map[string][6]int64{
		"ValueError: room: expected 4156 bytes, got 4155 at 0x40":         {64, 64, 64, 64, room - 1},
		"ValueError: room: expected 4156 bytes, got 4156 at 0x0":          {64, 64, 64, 0, room},
		"ValueError: starts, rows: expected addresses, got 0x0 and 0x40":  {0, 64, 64, 64, room},
		"ValueError: rows: expected an address that 8 divides, got 0x44":  {64, 68, 64, 64, room},
		"ValueError: places: expected an address that 8 divides, got 0x4": {64, 64, 4, 64, room},
		"ValueError: room: expected an address that 8 divides, got 0x42":  {64, 64, 0, 66, room},
	} {
		_, err := SegmentTranspose(0, address(list), w[0], w[1], w[2], w[3], w[4], 0)
		fails(t, err, want)
	}
	_, err = SegmentTranspose(0, 0, 64, 64, 64, 64, room, 0)
	fails(t, err, "ValueError: list: expected an address, got 0")
	runtime.KeepAlive(list)
}

// Words of attention, behind those of its reduction.
const (
	ofSource = ofRoomBytes + 1 + iota
	ofTarget
	ofEdge
	ofLog
	ofAlpha
	ofPre
	ofToTarget
	ofSlope
	ofShared
	ofOwn
	ofAtt
	ofEdgeRows
	ofScores
	ofToOwn
	ofToAtt
	ofToEdge
)

func TestDeviceAttentionArguments(t *testing.T) {
	good := func() []int64 {
		list := make([]int64, ofToEdge+1)
		for _, at := range []int{ofX, ofIndptr, ofIndices, ofOut, ofSource, ofTarget, ofLog} {
			list[at] = 64
		}
		list[ofSources], list[ofTable], list[ofRows], list[ofEdges], list[ofWidth], list[ofHeads] = 5, 5, 2, 3, 4, 2
		list[ofIDBits], list[ofFloatBits] = 64, 16
		return list
	}
	for want, change := range map[string]map[int]int64{
		"ValueError: segments: expected attention on a plain sum":             {ofKind: 1},
		"ValueError: segments: expected addresses of attention":               {ofSource: 0},
		"ValueError: segments: expected addresses of attention, got {Reduct":  {ofAlpha: 64},
		"ValueError: negative_slope: expected a finite number, got +Inf":      {ofSlope: int64(math.Float64bits(math.Inf(1)))},
		"ValueError: segments: expected shared rows as 0 or 1, got 2":         {ofShared: 2},
		"ValueError: source: expected an address that 4 divides, got 0x42":    {ofSource: 66},
		"ValueError: log: expected an address that 8 divides, got 0x44":       {ofLog: 68, ofFloatBits: 64},
		"ValueError: alpha: expected an address that 2 divides, got 0x41":     {ofAlpha: 65, ofPre: 64, ofToTarget: 64},
		"ValueError: to_target: expected an address that 4 divides, got 0x42": {ofAlpha: 64, ofPre: 64, ofToTarget: 66},
		"ValueError: edge: expected an address that 4 divides, got 0x42":      {ofEdge: 66},
		"ValueError: segments: expected sizes >= 0 and heads that divide":     {ofHeads: 3},
		"ValueError: room: expected 48 bytes, got 47 at 0x40":                 {ofPiece: 8, ofRoom: 64, ofRoomBytes: 47},
		"ValueError: segments: expected scores on a plain sum":                {ofOwn: 64, ofAtt: 64, ofScores: 64, ofPlaces: 64},
		"ValueError: segments: expected addresses of scores":                  {ofOwn: 64, ofAtt: 64},
		"ValueError: att: expected an address that 4 divides, got 0x42":       {ofOwn: 64, ofAtt: 66, ofScores: 64},
		"ValueError: to_edge: expected an address that 2 divides, got 0x41":   {ofOwn: 64, ofAtt: 64, ofScores: 64, ofToOwn: 64, ofToEdge: 65},
	} {
		list := good()
		for at, value := range change {
			list[at] = value
		}
		_, err := SegmentAttend(0, address(list), 0)
		fails(t, err, "")
		if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		runtime.KeepAlive(list)
	}
	// The word behind those of a reduction is the gradient's address.
	for want, change := range map[string]map[int]int64{
		"TypeError: segments: expected ids of 32 or 64 bits and floats of 16, 32 or 64, got ids of 8 and": {ofIDBits: 8},
		"ValueError: segments: expected sizes >= 0":                                                       {ofWidth: 0},
		"ValueError: segments: expected a width of at most 1048576 and at most":                           {ofWidth: 1<<20 + 1},
		"ValueError: indptr: expected an address that 8 divides, got 0x44":                                {ofIndptr: 68},
		"ValueError: grad: expected an address that 4 divides, got 0x41":                                  {ofRoomBytes + 1: 65},
	} {
		list := []int64{64, 64, 64, 0, 64, 0, 0, 2, 3, 4, 1, 0, 64, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		for at, value := range change {
			list[at] = value
		}
		_, err := SegmentSoftmax(0, address(list), 0)
		fails(t, err, "")
		if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		runtime.KeepAlive(list)
	}
	_, err := SegmentSoftmax(0, 0, 0)
	fails(t, err, "ValueError: list: expected an address, got 0")
	_, err = SegmentAttend(0, 0, 0)
	fails(t, err, "ValueError: list: expected an address, got 0")
}

// Two rows of three edges, of which one leads to no row of x.
func TestDeviceSegments(t *testing.T) {
	deviceRing(t, 1)
	upload := func(a []int64) int64 {
		mem, err := DeviceUpload(0, address(a), int64(len(a))*8, 0)
		if err != nil {
			t.Fatal(err)
		}
		return view(mem, 2)[1]
	}
	floats := func(values ...float64) (words []int64) {
		for _, v := range values {
			words = append(words, int64(math.Float64bits(v)))
		}
		return words
	}
	check := func(at int64, want []int64) {
		t.Helper()
		mem, err := DeviceDownload(0, at, int64(len(want))*8, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := view(view(mem, 2)[1], int64(len(want))); !slices.Equal(got, want) {
			t.Errorf("got %#x, want %#x", got, want)
		}
	}
	x, out, bad := upload(floats(1, 2, 3, 4, 5, 6)), upload(make([]int64, 4)), upload([]int64{-1})
	list := []int64{
		ofX: x, ofIndptr: upload([]int64{0, 2, 3}), ofIndices: upload([]int64{2, 0, 3}), ofOut: out,
		ofSources: 3, ofRows: 2, ofEdges: 3, ofWidth: 2, ofHeads: 1, ofIDBits: 64, ofFloatBits: 64,
		ofTable: 3, ofPlaces: 0,
	}
	if _, err := SegmentReduce(0, address(list), 0, bad); err != nil {
		t.Fatal(err)
	}
	check(out, floats(6, 8, 0, 0))
	check(bad, []int64{2})
	dots := upload(make([]int64, 3))
	if _, err := SegmentDots(0, address(list), dots, 0); err != nil {
		t.Fatal(err)
	}
	check(dots, floats(5*6+6*8, 6+2*8, 0))
	starts, rows, places := upload(make([]int64, 4)), upload(make([]int64, 3)), upload(make([]int64, 3))
	room := upload(make([]int64, 1024))
	if _, err := SegmentTranspose(0, address(list), starts, rows, places, room, 8*1024, 0); err != nil {
		t.Fatal(err)
	}
	check(starts, []int64{0, 1, 1, 2})
	check(rows, []int64{0, 0, 0})
	check(places, []int64{1, 0, 0})
	runtime.KeepAlive(list)
}
