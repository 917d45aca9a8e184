package answer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

const readHeaderTimeout = 10 * time.Second

// Serve answers each request with the status until ctx ends. With pair, PEM of a certificate and
// its key, it speaks HTTPS.
func Serve(ctx context.Context, listener net.Listener, status int, pair []byte) error {
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
