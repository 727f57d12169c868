/* One copy by the portal of a shared work queue. With an argument: the node is opened and closed once before. Right: exit code 0 */
#include "dsa.h"
int main(int argc, char **argv){ (void)argv; if(argc>1) close(open(WQ,O_RDWR)); if(wq_open()) return 2; static char a[64]="text",b[64]; static struct dsa_completion_record c __attribute__((aligned(32))); struct dsa_hw_desc d={0}; d.opcode=3; d.src_addr=(uintptr_t)a; d.dst_addr=(uintptr_t)b; d.xfer_size=64; b[0]=0; int s=submit_wait(&d,&c,20); printf("status %d\n",s); return s!=1||memcmp(a,b,64); }
