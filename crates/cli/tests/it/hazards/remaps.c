// Mappings move, grow, shrink and are split while their pages move.
#include "hazard.h"

enum { BLOCKS = 40, SIZE = 128 * PAGE, ROUNDS = 4000 };

static uint64_t *blocks[BLOCKS];
static size_t sizes[BLOCKS];

static void write_from(int block, size_t page) {
	for (; page < sizes[block] / PAGE; page++)
		blocks[block][page * WORDS] = page * 31 + block;
}

static long check(int block, size_t count) {
	long bad = 0;
	for (size_t page = 0; page < count; page++)
		bad += *(volatile uint64_t *)&blocks[block][page * WORDS] != page * 31 + block;
	return bad;
}

int main(void) {
	unsigned random = 1;
	long bad = 0, failed = 0;
	alarm(60);
	fill();
	for (int block = 0; block < BLOCKS; block++) {
		sizes[block] = SIZE;
		blocks[block] = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		write_from(block, 0);
	}
	settle();
	for (int round = 0; round < ROUNDS; round++) {
		random = random * 1664525u + 1013904223u;
		int block = (random >> 8) % BLOCKS, how = (random >> 16) % 4;
		size_t before = sizes[block], after = (32 + (random >> 20) % 192) * PAGE;
		void *moved;
		if (how < 2) {
			moved = mremap(blocks[block], before, after, MREMAP_MAYMOVE);
		} else {
			// To a place of its own, and with MREMAP_DONTUNMAP what was left is empty.
			after = before;
			void *place = mmap(NULL, before, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			int leaves = how == 3 ? MREMAP_DONTUNMAP : 0;
			moved = mremap(blocks[block], before, after, MREMAP_MAYMOVE | MREMAP_FIXED | leaves, place);
			if (leaves && moved != MAP_FAILED) {
				for (size_t page = 0; page < before / PAGE; page++)
					bad += *(volatile uint64_t *)&blocks[block][page * WORDS] != 0;
				munmap(blocks[block], before);
			}
		}
		if (moved == MAP_FAILED) {
			failed++;
			continue;
		}
		blocks[block] = moved;
		sizes[block] = after;
		bad += check(block, (before < after ? before : after) / PAGE);
		if (after > before)
			write_from(block, before / PAGE);
	}
	for (int block = 0; block < BLOCKS; block++)
		bad += check(block, sizes[block] / PAGE);
	printf("%ld failed, %ld bad, %d pages wrong\n", failed, bad, wrong());
	return 0;
}
