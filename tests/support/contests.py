"""A file of a caption contest, as data sets are read from."""

HEADER = "rank,funny,somewhat_funny,unfunny,count,score,caption"
GOOD = HEADER + '\n1,1,0,1,2,2.0,"Yes, but ""why""\nnow?"\n2,1,1,2,4,1.75,No.\n3,0,0,5,5,1.0,Where?\n'
