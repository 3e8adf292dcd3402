var rtxDemo = rtxDemo || {};
rtxDemo.explorer = [
  {"name": "khop-1x6-random", "model": "1x6-random", "toy": "hops", "layers": 1, "passes": 6, "random": true, "hops": 4},
  {"name": "khop-1x4", "model": "1x4", "toy": "hops", "layers": 1, "passes": 4, "random": false, "hops": 4},
  {"name": "khop-2x2", "model": "2x2", "toy": "hops", "layers": 2, "passes": 2, "random": false, "hops": 4},
  {"name": "khop-1x1", "model": "1x1", "toy": "hops", "layers": 1, "passes": 1, "random": false, "hops": 4},
  {"name": "khop-2x1", "model": "2x1", "toy": "hops", "layers": 2, "passes": 1, "random": false, "hops": 4},
  {"name": "khop-4x1", "model": "4x1", "toy": "hops", "layers": 4, "passes": 1, "random": false, "hops": 4},
  {"name": "khop-hard-2x3", "model": "2x3", "toy": "hops", "layers": 2, "passes": 3, "random": false, "hops": 8},
  {"name": "state-tracking-1x8", "model": "1x8", "toy": "cups", "layers": 1, "passes": 8, "random": false, "hops": 0},
];
