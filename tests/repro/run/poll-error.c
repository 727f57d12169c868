/* poll(2) on a work queue while a descriptor without a place for its record fails, which only SWERROR can say. Right: it wakes, POLLIN */
#include "dsa.h"
#include <poll.h>
static void *wait_for_error(void *ready){ struct pollfd p={wqfd,POLLIN,0}; *(volatile int*)ready=1; int r=poll(&p,1,-1); printf("poll: %d revents %#x\n",r,p.revents); return (void*)(intptr_t)(r==1&&(p.revents&POLLIN)); }
int main(void){ if(wq_open()) return 2; volatile int ready=0; pthread_t t; pthread_create(&t,0,wait_for_error,(void*)&ready); while(!ready) sched_yield(); usleep(100000); struct dsa_hw_desc d __attribute__((aligned(64)))={0}; d.opcode=0x7f; while(enqcmd(portal,&d)) sched_yield(); void *right; pthread_join(t,&right); return !right; }
