// Command pause sleeps until it is told to end. It is the program of the testbed's test images, which have to run in a
// pod but have nothing to do; it must stay free of dependencies, because its size is part of every test image.
package main
