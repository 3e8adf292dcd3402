var rtxDemo = rtxDemo || {};
rtxDemo.explorerTexts = {
  "hops": {
    "letters": "adadcdcacacbabdabdbacbdcdcdcbcabacbdcbacadcbabac",
    "serves": [
      "2.3",
      "3.3",
      "4.3"
    ]
  },
  "cups": {
    "letters": "uulluouooduroulr",
    "serves": [
      "1.3",
      "1.4",
      "2.2",
      "2.3",
      "3.3",
      "4.2",
      "5.3",
      "6.3",
      "7.3"
    ]
  }
};
