package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/metadata"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/plugins/content/local"
	bolt "go.etcd.io/bbolt"
)

// Names that containerd's own plugins use, relative to its root directory.
const (
	contentDirectory = "io.containerd.content.v1.content"
	metadataFile     = "io.containerd.metadata.v1.bolt/meta.db"
)

// pinned keeps the kubelet's garbage collection from deleting the image; containerd's CRI plugin reads the label.
var pinned = map[string]string{"io.cri-containerd.pinned": "pinned"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "imagestore:", err)
		os.Exit(1)
	}
}

// run imports the archive and prints the name of each image that it created.
func run(ctx context.Context, args []string, archive io.Reader, out io.Writer) (err error) {
	if len(args) != 1 {
		return errors.New("want one argument: containerd's root directory")
	}
	db, err := open(args[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	ctx = namespaces.WithNamespace(ctx, "k8s.io")
	if err := db.Init(ctx); err != nil {
		return fmt.Errorf("preparing the metadata database: %w", err)
	}
	client, err := containerd.New("", containerd.WithServices(
		containerd.WithContentStore(db.ContentStore()),
		containerd.WithImageStore(metadata.NewImageStore(db)),
		containerd.WithLeasesService(metadata.NewLeaseManager(db)),
	))
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	images, err := client.Import(ctx, archive, containerd.WithAllPlatforms(true), containerd.WithImageLabels(pinned))
	if err != nil {
		return fmt.Errorf("importing the archive: %w", err)
	}
	for _, image := range images {
		fmt.Fprintln(out, image.Name)
	}
	return nil
}

func open(root string) (*metadata.DB, error) {
	content, err := local.NewStore(filepath.Join(root, contentDirectory))
	if err != nil {
		return nil, fmt.Errorf("opening the content store: %w", err)
	}
	file := filepath.Join(root, metadataFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o711); err != nil {
		return nil, err
	}
	database, err := bolt.Open(file, 0o644, nil)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", file, err)
	}
	return metadata.NewDB(database, content, nil), nil
}
