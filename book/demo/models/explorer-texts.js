var rtxDemo = rtxDemo || {};
rtxDemo.explorerTexts = {
  "hops": {
    "letters": "abacacabadcdbadabacdcbabacbcacbabdcacacdbcacdabc",
    "serves": [
      "4.3",
      "3.4",
      "2.4",
      "1.1"
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
