/* lseek(2) on a work queue. Right: ESPIPE, for idxd has no llseek */
#include "dsa.h"
int main(void){ int f=open(WQ,O_RDWR); if(f<0){ perror("open"); return 2; } off_t o=lseek(f,1,SEEK_SET); printf("lseek: %ld %s\n",(long)o,o<0?strerror(errno):""); return !(o==-1&&errno==ESPIPE); }
