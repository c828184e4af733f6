/// The descriptions that come with dhole, by their names.
pub(crate) const PRESETS: [(&str, &str); 10] = [
    ("default", include_str!("../../networks/default.toml")),
    ("dosa-1999", include_str!("../../networks/dosa-1999.toml")),
    ("orca-fe", include_str!("../../networks/orca-fe.toml")),
    (
        "orca-myrinet",
        include_str!("../../networks/orca-myrinet.toml"),
    ),
    (
        "millipage-myrinet",
        include_str!("../../networks/millipage-myrinet.toml"),
    ),
    (
        "ethernet-10g",
        include_str!("../../networks/ethernet-10g.toml"),
    ),
    (
        "ethernet-100g",
        include_str!("../../networks/ethernet-100g.toml"),
    ),
    ("manna", include_str!("../../networks/manna.toml")),
    (
        "jackal-myrinet",
        include_str!("../../networks/jackal-myrinet.toml"),
    ),
    ("infiniband", include_str!("../../networks/infiniband.toml")),
];
