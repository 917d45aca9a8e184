// Package charts contains the Helm charts of the extension and its admission, and the image vector
// of the images that the extension deploys into shoots. The package must not depend on its users.
package charts
