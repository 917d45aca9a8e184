// Package cache compares the cache with a stock distribution, nginx and downloads without a cache,
// in rows: delay and rate of the line to the upstream, size of the blobs, number of clients.
//
// A slow contender is not an error. The report says which goals are held.
//
// The package must not know how a contender works: it measures seconds, bytes and requests.
package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	rounds, roundsQuick = 3, 1
	rowTimeout          = 5 * time.Minute
)

// Options configure a run.
type Options struct {
	Programs Programs
	Versions map[string]string // of the programs
	Folder   string            // for volumes, configurations and logs
	Quick    bool
	Progress *progress.Recorder
}

// Measure measures all rows and faults. All processes are stopped at the end, even if ctx is
// canceled.
func Measure(ctx context.Context, o Options) (report Report, err error) {
	b := &run{Options: o, rows: allRows, rounds: rounds, blobs: map[int64][]blob{}}
	if o.Quick {
		b.rows, b.rounds = quickRows, roundsQuick
	}
	report = Report{Date: time.Now().UTC().Format(time.DateOnly), Versions: maps.Clone(o.Versions), Rounds: b.rounds}
	if report.Machine, err = readMachine(); err != nil {
		return report, err
	}
	if report.LoadBefore, err = bench.LoadAverage(); err != nil {
		return report, err
	}
	defer func() {
		if b.registry != nil {
			err = errors.Join(err, b.registry.Stop())
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(o.Folder, "upstream")))
	}()
	if err := o.Progress.Step(ctx, "upstream", b.startUpstream); err != nil {
		return report, err
	}
	for _, row := range b.rows {
		measured := Measured{Row: row}
		if err := o.Progress.Step(ctx, row.Name(), func(ctx context.Context) (err error) {
			measured.Results, err = b.measure(ctx, row)
			return err
		}); err != nil {
			return report, fmt.Errorf("%s: %w", row.Name(), err)
		}
		report.Rows = append(report.Rows, measured)
	}
	if report.Faults, err = b.faults(ctx); err != nil {
		return report, err
	}
	report.Goals = Judge(report.Rows, report.Machine.SHA256PerGB)
	report.LoadAfter, err = bench.LoadAverage()
	return report, err
}

type run struct {
	Options
	rows   []Row
	rounds int

	registry *registry
	blobs    map[int64][]blob // by size
	small    blob             // makes a new process ready, not measured
	tag      blob
}

func (b *run) startUpstream(ctx context.Context) (err error) {
	if b.registry, err = startRegistry(ctx, b.Programs[Stock], b.Folder); err != nil {
		return err
	}
	if b.small, err = b.registry.Push(ctx, smallBlob); err != nil {
		return err
	}
	b.tag, err = b.registry.PushImage(ctx, "latest")
	return err
}

// blobsOf returns n different blobs of this size. All rows and contenders share them, because each
// measurement starts with an empty volume.
func (b *run) blobsOf(ctx context.Context, size int64, n int) ([]blob, error) {
	for len(b.blobs[size]) < n {
		blob, err := b.registry.Push(ctx, size)
		if err != nil {
			return nil, err
		}
		b.blobs[size] = append(b.blobs[size], blob)
	}
	return b.blobs[size][:n], nil
}

// measure lets the contenders take turns. Each round starts with another one.
func (b *run) measure(ctx context.Context, row Row) (map[string]Result, error) {
	ctx, cancel := progress.Within(ctx, rowTimeout*time.Duration(b.rounds), "the row did not finish")
	defer cancel()
	all := map[string][]Result{}
	for round := range b.rounds {
		for i := range Contenders {
			name := Contenders[(i+round)%len(Contenders)]
			result, err := b.once(ctx, row, name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			all[name] = append(all[name], result)
		}
	}
	results := map[string]Result{}
	for _, name := range Contenders {
		results[name] = median(all[name])
		progress.Note(ctx, "%s %.0f MB/s", name, results[name].Throughput/MB)
	}
	return results, nil
}
