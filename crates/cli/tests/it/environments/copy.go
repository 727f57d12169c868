// Copies 4 KiB with a dedicated work queue, without a C library: a runtime that makes system calls of its own.
package main

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

const size = 4096

type descriptor struct {
	pasid, flagsOperation           uint32
	completion, source, destination uint64
	length                          uint32
	rest                            [28]byte
}

func movdir64b(portal uintptr, work uintptr)

func memory(fd int, length uintptr, protection, flags int) uintptr {
	address, _, errno := syscall.Syscall6(syscall.SYS_MMAP, 0, length, uintptr(protection), uintptr(flags), uintptr(fd), 0)
	if errno != 0 {
		println("mmap:", errno.Error())
		syscall.Exit(1)
	}
	return address
}

func main() {
	fd, err := syscall.Open("/dev/dsa/wq0.0", syscall.O_RDWR, 0)
	if err != nil {
		println("/dev/dsa/wq0.0:", err.Error())
		syscall.Exit(1)
	}
	portal := memory(fd, 4096, syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_POPULATE)
	anonymous := syscall.MAP_PRIVATE | syscall.MAP_ANON | syscall.MAP_POPULATE
	place := memory(-1, 4*size, syscall.PROT_READ|syscall.PROT_WRITE, anonymous)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(place)), 4*size)
	for i := range bytes[:size] {
		bytes[i] = 'x'
	}
	record := place + 2*size
	work := (*descriptor)(unsafe.Pointer(place + 3*size))
	// Memory move, with a completion record.
	*work = descriptor{
		flagsOperation: 3<<24 | 1<<3 | 1<<2,
		completion:     uint64(record),
		source:         uint64(place),
		destination:    uint64(place + size),
		length:         size,
	}
	movdir64b(portal, place+3*size)
	for atomic.LoadUint32((*uint32)(unsafe.Pointer(record)))&0xff == 0 {
	}
	copied := "not copied"
	if string(bytes[:size]) == string(bytes[size:2*size]) {
		copied = "copied"
	}
	status := string('0' + bytes[2*size])
	syscall.Write(1, []byte("status "+status+", "+copied+"\n"))
}
