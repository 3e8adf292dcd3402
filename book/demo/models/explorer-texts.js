var rtxDemo = rtxDemo || {};
rtxDemo.explorerTexts = {
  "hops": {
    "letters": "cbdbdbacadcbacbdbadcdbacdbdcacabadcdbcabdcabdcdb",
    "serves": [
      "4.3",
      "1.1",
      "3.3",
      "2.3"
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
