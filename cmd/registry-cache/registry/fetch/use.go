package fetch

import (
	"context"
	"errors"
	"sync"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/configuration"
	repositorymiddleware "github.com/distribution/distribution/v3/registry/middleware/repository"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	storagemiddleware "github.com/distribution/distribution/v3/registry/storage/driver/middleware"
)

const (
	middlewareName = "fetch"
	groupOption    = "group"
)

// Use puts a Group of its own in front of the configured repositories and storage, of which root is the folder. It does nothing for a
// registry that is no cache, and for one whose storage is no folder, with the root "": only files can be read while they are written.
// What is stored has to be asked by way of all other middlewares, so call it after whatever else changes the configured storage.
func Use(config *configuration.Configuration, root string) error {
	if config.Proxy.RemoteURL == "" || root == "" {
		return nil
	}
	if err := register(); err != nil {
		return err
	}
	if config.Middleware == nil {
		config.Middleware = map[string][]configuration.Middleware{}
	}
	middleware := configuration.Middleware{Name: middlewareName, Options: configuration.Parameters{groupOption: NewGroup(root)}}
	for _, kind := range []string{"repository", "storage"} {
		config.Middleware[kind] = append(config.Middleware[kind], middleware)
	}
	return nil
}

var errNoGroup = errors.New(middlewareName + " is no middleware for a configuration file: it is always in use")

// register makes the middlewares known to distribution, which takes each name once.
var register = sync.OnceValue(func() error {
	return errors.Join(
		storagemiddleware.Register(middlewareName,
			func(ctx context.Context, below driver.StorageDriver, options map[string]any) (driver.StorageDriver, error) {
				if group, ok := options[groupOption].(*Group); ok {
					return group.Storage(ctx, below)
				}
				return nil, errNoGroup
			}),
		repositorymiddleware.Register(middlewareName,
			func(ctx context.Context, below distribution.Repository, options map[string]any) (distribution.Repository, error) {
				if group, ok := options[groupOption].(*Group); ok {
					return group.Repository(ctx, below)
				}
				return nil, errNoGroup
			}))
})
