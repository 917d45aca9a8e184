// Package charts holds the Helm charts of the extension and of its admission, and the image vector of the images that the
// extension deploys into shoots. It must not know what is done with either.
package charts
