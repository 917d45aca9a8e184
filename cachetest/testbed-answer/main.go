// Command testbed-answer stands in for a cache that fails: it answers every request with one
// status, and can use any certificate.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "testbed-answer:", err)
		os.Exit(1)
	}
}

// run answers on the address with the status, over HTTPS if there is a file <program>.pem.
func run(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("usage: testbed-answer LISTEN_ADDRESS STATUS")
	}
	status, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	pair, err := os.ReadFile(args[0] + ".pem")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the certificate: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", args[1])
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return answer(ctx, listener, status, pair)
}

const readHeaderTimeout = 10 * time.Second

// answer answers each request with the status until ctx ends. If pair is not empty (the PEM of a
// certificate and its key), it speaks HTTPS.
func answer(ctx context.Context, listener net.Listener, status int, pair []byte) error {
	server := &http.Server{
		ReadHeaderTimeout: readHeaderTimeout, ErrorLog: log.New(io.Discard, "", 0), // clients refuse an expired certificate
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }),
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	serve := server.Serve
	if len(pair) > 0 {
		certificate, err := tls.X509KeyPair(pair, pair)
		if err != nil {
			return fmt.Errorf("certificate: %w", err)
		}
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answer requests: %w", err)
	}
	return nil
}
