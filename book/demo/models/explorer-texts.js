var rtxDemo = rtxDemo || {};
rtxDemo.explorerTexts = {
  "hops": {
    "letters": "cacbcdadcbcabdcbcabadabcbdcadabdcabcbadbdcdcbcba",
    "serves": [
      "3.4",
      "1.2",
      "2.1",
      "4.4"
    ]
  },
  "cups": {
    "letters": "uulluouooduroulr",
    "serves": [
      "1.4",
      "2.2",
      "1.3",
      "4.2",
      "3.3",
      "7.3",
      "5.3",
      "2.3",
      "6.3"
    ]
  }
};
