package cleaner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// jobTimeout limits the wait for one systemd job. It is longer than TimeoutStopSec of the unit,
// after which systemd kills the unit's processes.
const jobTimeout = 30 * time.Second

// noSuchUnit is systemd's D-Bus error for an unknown unit.
const noSuchUnit = "org.freedesktop.systemd1.NoSuchUnit"

// Systemd is a connection to the systemd of a node.
type Systemd struct{ connection *systemd.Conn }

// Connect connects to the systemd of the node whose root directory is root. It uses systemd's
// private socket, which accepts only the user root and needs no message bus.
func Connect(root string) (*Systemd, error) {
	socket := filepath.Join(root, "run/systemd/private")
	connection, err := systemd.NewConnection(func() (*dbus.Conn, error) { return dial(socket) })
	if err != nil {
		return nil, fmt.Errorf("connect to systemd at %s, which must be mounted from the node: %w", socket, err)
	}
	return &Systemd{connection: connection}, nil
}

func dial(socket string) (*dbus.Conn, error) {
	connection, err := dbus.Dial("unix:path=" + dbus.EscapeBusAddressValue(socket))
	if err != nil {
		return nil, err
	}
	// Pass the uid: looking up a user name needs files that an image built from scratch lacks.
	if err := connection.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))}); err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return connection, nil
}

// Close closes the connection.
func (s *Systemd) Close() { s.connection.Close() }

// Stop implements Units. A unit unknown to systemd counts as stopped.
func (s *Systemd) Stop(ctx context.Context, unit string) error {
	err := runJob(ctx, "stop", unit, s.connection.StopUnitContext)
	if failure := (dbus.Error{}); errors.As(err, &failure) && failure.Name == noSuchUnit {
		return nil
	}
	return err
}

// Start implements Units.
func (s *Systemd) Start(ctx context.Context, unit string) error {
	return runJob(ctx, "start", unit, s.connection.StartUnitContext)
}

// Reload implements Units.
func (s *Systemd) Reload(ctx context.Context) error {
	if err := s.connection.ReloadContext(ctx); err != nil {
		return fmt.Errorf("reload the units of systemd: %w", err)
	}
	return nil
}

type enqueue func(ctx context.Context, unit, mode string, result chan<- string) (int, error)

func runJob(ctx context.Context, verb, unit string, enqueue enqueue) error {
	ctx, cancel := context.WithTimeoutCause(ctx, jobTimeout, fmt.Errorf("the systemd job did not finish within %s", jobTimeout))
	defer cancel()
	result := make(chan string, 1)
	if _, err := enqueue(ctx, unit, "replace", result); err != nil {
		return fmt.Errorf("%s %s: %w", verb, unit, err)
	}
	select {
	case outcome := <-result:
		if outcome != "done" {
			return fmt.Errorf("%s %s: the systemd job ended as %q", verb, unit, outcome)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s %s: %w", verb, unit, context.Cause(ctx))
	}
}
